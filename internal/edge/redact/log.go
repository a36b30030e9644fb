package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler hands records on to next without secrets: in the message, in
// attributes of text, and in what prints itself, such as errors.
func (r *Redactor) Handler(next slog.Handler) slog.Handler { return handler{r, next} }

type handler struct {
	r    *Redactor
	next slog.Handler
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.r.Text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return handler{h.r, h.next.WithAttrs(clean)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.r, h.next.WithGroup(name)} }

func (h handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.r.Text(v.String()))
	case slog.KindGroup:
		var group []slog.Attr
		for _, inner := range v.Group() {
			group = append(group, h.attr(inner))
		}
		v = slog.GroupValue(group...)
	case slog.KindAny:
		v = slog.StringValue(h.r.Text(plain(v.Any())))
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// plain is what a handler would print.
func plain(v any) string {
	switch v := v.(type) {
	case error:
		return v.Error()
	case []byte:
		return string(v)
	}
	return fmt.Sprintf("%+v", v)
}
