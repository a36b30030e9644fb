package web

import (
	"math"
	"mime"
	"net/http"
	"path"
	"time"

	"goclaw"
)

func (s *server) listArtifacts(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r, "run", "session", "root", "name", "limit")
	f := goclaw.ArtifactFilter{
		Run: q.text("run"), Session: q.key("session"), Root: q.text("root"), Name: q.text("name"),
		Limit: q.number("limit", math.MaxInt32),
	}
	if q.err != nil {
		s.fail(w, r, q.err)
		return
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
	a, data, err := s.Backend.Artifact(r.Context(), r.PathValue("run"), r.PathValue("name"))
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
