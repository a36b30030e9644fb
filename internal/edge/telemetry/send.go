package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracev1 "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// answerTime bounds one request, tries how often it is made.
	answerTime = 10 * time.Second
	tries      = 4
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// sender speaks OTLP over HTTP.
type sender struct {
	url      string
	headers  map[string]string
	resource *resource.Resource
	client   *http.Client
}

func newSender(o Options) sender {
	s := sender{url: o.URL, headers: o.Headers, resource: &resource.Resource{}, client: &http.Client{
		Timeout: answerTime,
		// A redirect would carry the headers' keys elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for name, value := range o.Resource {
		s.resource.Attributes = append(s.resource.Attributes, text(name, value))
	}
	slices.SortFunc(s.resource.Attributes, func(a, b *common.KeyValue) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
	return s
}

// where names the collector without what may be secret of its address.
func (s sender) where() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return "unknown"
	}
	return u.Scheme + "://" + u.Host
}

// send makes the request, again where the protocol says that this may help.
func (s sender) send(ctx context.Context, spans []*tracev1.Span) error {
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*tracev1.ResourceSpans{{
		Resource:   s.resource,
		ScopeSpans: []*tracev1.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "goclaw"}, Spans: spans}},
	}}})
	if err != nil {
		return err
	}
	pause := firstPause
	for try := 1; ; try++ {
		after, err := s.try(ctx, body)
		if err == nil || after < 0 || try == tries {
			return err
		}
		wait := min(max(after, pause), maxPause)
		pause *= 2
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// try makes one request. after is when to try again at the earliest, negative
// if that can't help.
func (s sender) try(ctx context.Context, body []byte) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // its text repeats the address
		}
		return 0, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // a date is rare, and means: not at once
		return time.Duration(seconds) * time.Second, fmt.Errorf("it answered HTTP %d", res.StatusCode)
	}
	return -1, fmt.Errorf("it answered HTTP %d", res.StatusCode)
}
