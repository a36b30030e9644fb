package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw"
)

// Store is where artifacts are.
type Store interface {
	Run(ctx context.Context, id string) (goclaw.Run, error)
	ArtifactsOf(ctx context.Context, f goclaw.ArtifactFilter) ([]goclaw.Artifact, error)
	Blob(ctx context.Context, sha string) ([]byte, error)
}

const (
	maxContent = 1 << 20 // bytes of one artifact
	pageSize   = 30_000  // bytes that one read shows
	mostListed = 50
)

// The schemas and descriptions are sent with every model call.
const (
	writeSchema = `{"type":"object","required":["name","content"],"properties":{"name":{"type":"string"},"content":{"type":"string"},"mediaType":{"type":"string"}}}`
	readSchema  = `{"type":"object","properties":{"handle":{"type":"string"},"name":{"type":"string"},"offset":{"type":"integer"}}}`
	listSchema  = `{"type":"object","properties":{}}`
)

// Names are the names of the three tools.
func Names() []string { return []string{"artifact_list", "artifact_read", "artifact_write"} }

// Tools returns the three tools. Under the names that are reserved nothing can
// be written: the runtime itself does.
func Tools(s Store, reserved ...string) []goclaw.Tool {
	d := deps{s, reserved}
	spec := func(name, description, schema string) goclaw.ToolSpec {
		return goclaw.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(schema), Idempotent: true}
	}
	write := spec("artifact_write", "Leave a text for other runs; returns its handle.", writeSchema)
	write.Ordered = true // of two under one name the last counts
	return []goclaw.Tool{
		tool{write, d.write},
		tool{spec("artifact_read", "Read an artifact by handle or name.", readSchema), d.read},
		tool{spec("artifact_list", "List your and your workers' artifacts.", listSchema), d.list},
	}
}

type tool struct {
	spec goclaw.ToolSpec
	call func(context.Context, goclaw.Invocation) (goclaw.ToolResult, error)
}

func (t tool) Spec() goclaw.ToolSpec { return t.spec }

func (t tool) Call(ctx context.Context, in goclaw.Invocation) goclaw.ToolResult {
	res, err := t.call(ctx, in)
	switch {
	case err == nil:
		return res
	case goclaw.IsBadRequest(err):
		b, jerr := json.Marshal(goclaw.Failed(err.Error()))
		if jerr != nil {
			return goclaw.ToolError(jerr.Error())
		}
		return goclaw.ToolError(string(b))
	}
	return goclaw.ToolResult{Again: err} // the store could not be asked
}

type deps struct {
	store    Store
	reserved []string
}

// shown is what a model is told of an artifact.
type shown struct {
	Handle    string `json:"handle"`
	Size      int64  `json:"size"`
	MediaType string `json:"mediaType,omitempty"`
	At        string `json:"at,omitempty"`
}

func (d deps) write(_ context.Context, in goclaw.Invocation) (goclaw.ToolResult, error) {
	var q struct{ Name, Content, MediaType string }
	if err := arguments(in, &q); err != nil {
		return goclaw.ToolResult{}, err
	}
	if err := goclaw.CheckArtifactName(q.Name); err != nil {
		return goclaw.ToolResult{}, err
	}
	switch {
	case slices.Contains(d.reserved, q.Name):
		return goclaw.ToolResult{}, goclaw.BadRequest(fmt.Sprintf("%s is the name of what the runtime keeps; choose another", q.Name))
	case len(q.Content) > maxContent:
		return goclaw.ToolResult{}, goclaw.BadRequest(fmt.Sprintf("%s has %d bytes, an artifact at most %d; shorten it or split it into several", q.Name, len(q.Content), maxContent))
	case q.MediaType == "":
		q.MediaType = mediaType(q.Name)
	default:
		if _, _, err := mime.ParseMediaType(q.MediaType); err != nil || !strings.Contains(q.MediaType, "/") {
			return goclaw.ToolResult{}, goclaw.BadRequest(fmt.Sprintf("mediaType %q: want one such as text/markdown, or none", q.MediaType))
		}
	}
	res, err := answer(shown{Handle: goclaw.ArtifactHandle(in.Fence.Run, q.Name), Size: int64(len(q.Content))})
	res.Artifacts = []goclaw.ArtifactData{{Name: q.Name, MediaType: q.MediaType, Data: []byte(q.Content)}}
	return res, err
}

func mediaType(name string) string {
	switch path.Ext(name) {
	case ".md":
		return "text/markdown"
	case ".json":
		return "application/json"
	}
	return "text/plain"
}

func (d deps) read(ctx context.Context, in goclaw.Invocation) (goclaw.ToolResult, error) {
	var q struct {
		Handle, Name string
		Offset       int
	}
	if err := arguments(in, &q); err != nil {
		return goclaw.ToolResult{}, err
	}
	a, err := d.find(ctx, in, q.Handle, q.Name)
	if err != nil {
		return goclaw.ToolResult{}, err
	}
	data, err := d.store.Blob(ctx, a.SHA256)
	if err != nil {
		return goclaw.ToolResult{}, err
	}
	if !utf8.Valid(data) {
		return goclaw.ToolResult{}, goclaw.BadRequest(fmt.Sprintf("%s is no text: %d bytes of %s", a.Handle(), len(data), a.MediaType))
	}
	return page(a, string(data), q.Offset)
}

// page is the part of text that begins at a byte, never within a character.
func page(a goclaw.Artifact, text string, offset int) (goclaw.ToolResult, error) {
	if offset > len(text) {
		return goclaw.ToolResult{}, goclaw.BadRequest(fmt.Sprintf("%s has only %d bytes", a.Handle(), len(text)))
	}
	offset = max(offset, 0)
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	end := min(offset+pageSize, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	part := text[offset:end]
	if end < len(text) {
		part += fmt.Sprintf("\n[%d of %d bytes; read on with offset %d]", end-offset, len(text), end)
	}
	return goclaw.ToolOK(part), nil
}

// find returns the artifact that is meant, if it may be read: the newest one
// of the session or its workers, else, for a worker, of the others in its tree.
func (d deps) find(ctx context.Context, in goclaw.Invocation, handle, name string) (goclaw.Artifact, error) {
	if handle == "" {
		handle = name
	}
	run, name, err := "", handle, error(nil)
	switch {
	case handle == "":
		err = goclaw.BadRequest("which one? give its handle or its name (artifact_list shows yours)")
	case goclaw.IsArtifactHandle(handle):
		run, name, err = goclaw.ParseArtifactHandle(handle)
	}
	if err != nil {
		return goclaw.Artifact{}, err
	}
	filters := []goclaw.ArtifactFilter{{Session: in.Session, Name: name}}
	if in.Session.IsWorker() && in.Root != "" {
		filters = append(filters, goclaw.ArtifactFilter{Root: in.Root, Name: name})
	}
	for _, f := range filters {
		found, err := d.readable(ctx, in, f, run, 1)
		if err != nil {
			return goclaw.Artifact{}, err
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return goclaw.Artifact{}, d.missing(ctx, in, run, name)
}

// missing says why there is nothing to read.
func (d deps) missing(ctx context.Context, in goclaw.Invocation, id, name string) error {
	if id == "" {
		return goclaw.BadRequest(fmt.Sprintf("there is no artifact %q that you may read (artifact_list shows yours)", name))
	}
	run, err := d.store.Run(ctx, id)
	if errors.Is(err, goclaw.ErrNotFound) {
		return goclaw.BadRequest(fmt.Sprintf("there is no run %q", id))
	}
	if err != nil {
		return err
	}
	if ok, why := access(in).MaySee(goclaw.Thing{Artifact: &run}); !ok {
		return goclaw.BadRequest(fmt.Sprintf("what run %s left can't be read: %s", id, why))
	}
	return goclaw.BadRequest(fmt.Sprintf("run %s left no %q", id, name))
}

func access(in goclaw.Invocation) goclaw.Access {
	a := in.Profile.Access(in.Session, in.Fence.Run)
	a.Root = in.Root
	return a
}

// readable returns at most so many of the artifacts that f selects, the newest
// that may be read, of runs whose ids begin with run.
func (d deps) readable(ctx context.Context, in goclaw.Invocation, f goclaw.ArtifactFilter, run string, most int) ([]goclaw.Artifact, error) {
	all, err := d.store.ArtifactsOf(ctx, f)
	if err != nil {
		return nil, err
	}
	may := map[string]bool{}
	var found []goclaw.Artifact
	for _, a := range all {
		if len(found) == most {
			break
		}
		if !strings.HasPrefix(a.Run, run) {
			continue
		}
		ok, asked := may[a.Run]
		if !asked {
			left, err := d.store.Run(ctx, a.Run)
			if err != nil {
				return nil, err
			}
			ok, _ = access(in).MaySee(goclaw.Thing{Artifact: &left})
			may[a.Run] = ok
		}
		if ok {
			found = append(found, a)
		}
	}
	return found, nil
}

func (d deps) list(ctx context.Context, in goclaw.Invocation) (goclaw.ToolResult, error) {
	found, err := d.readable(ctx, in, goclaw.ArtifactFilter{Session: in.Session, Limit: mostListed}, "", mostListed)
	if err != nil {
		return goclaw.ToolResult{}, err
	}
	list := make([]shown, len(found))
	for i, a := range found {
		list[i] = shown{a.Handle(), a.Size, a.MediaType, a.CreatedAt.Time().Format("2006-01-02 15:04Z")}
	}
	return answer(list)
}

func arguments(in goclaw.Invocation, into any) error {
	if err := json.Unmarshal([]byte(in.Call.Arguments), into); err != nil {
		return goclaw.BadRequest("arguments: " + err.Error())
	}
	return nil
}

func answer(v any) (goclaw.ToolResult, error) {
	b, err := json.Marshal(v)
	return goclaw.ToolOK(string(b)), err
}
