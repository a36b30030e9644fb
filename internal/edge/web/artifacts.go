package web

import (
	"mime"
	"net/http"
	"path"
	"time"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

func (s *server) artifactRoutes() []route {
	return []route{
		{pattern: "GET /api/artifacts", handle: s.listArtifacts, op: openapi.Operation{
			ID: "listArtifacts", Tag: "artifacts", Summary: "What runs left, newest first",
			Query: []openapi.Param{
				{Name: "run", About: "left by this run"}, sessionKey("session", "left by this session's runs, or by workers that it asked for"),
				{Name: "root", About: "left by the workers of this run's tree"}, {Name: "name", About: "of this name"}, limit(),
			},
			Answers: ok("the artifacts", []goclaw.ArtifactInfo{}), Errors: []int{http.StatusNotFound},
		}},
		{pattern: "GET /api/artifacts/{run}/{name...}", handle: s.getArtifact, op: openapi.Operation{
			ID: "getArtifact", Tag: "artifacts", Summary: "The content of one, byte for byte, as an attachment",
			Path: []openapi.Param{named("run", "its run"), {Name: "name", About: "its name; it may hold slashes"}},
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "the content, with its own media type", Media: "*/*", Headers: []openapi.Param{
				{Name: "ETag", About: "its SHA-256"}, {Name: "Content-Disposition", About: "attachment, with the name's last part"},
			}}},
			Errors: []int{http.StatusNotFound},
		}},
	}
}

func (s *server) listArtifacts(w http.ResponseWriter, r *http.Request) {
	q := given(r)
	f := goclaw.ArtifactFilter{
		Run: q.Text("run"), Session: q.Key("session"), Root: q.Text("root"), Name: q.Text("name"), Limit: q.Number("limit"),
	}
	found, err := s.Backend.Artifacts(r.Context(), f)
	infos := make([]goclaw.ArtifactInfo, len(found))
	for i, a := range found {
		infos[i] = a.Info()
	}
	s.reply(w, r, infos, err)
}

// getArtifact answers with an artifact's content, byte for byte. A browser
// saves it: what a model wrote is nothing to run here.
func (s *server) getArtifact(w http.ResponseWriter, r *http.Request) {
	a, data, err := s.Backend.Artifact(r.Context(), given(r).Text("run"), given(r).Text("name"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	media := a.MediaType
	if _, _, err := mime.ParseMediaType(media); err != nil {
		media = "application/octet-stream"
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(a.Name)}))
	h.Set("ETag", `"`+a.SHA256+`"`)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = w.Write(data) // the client may have left
}
