package web_test

import (
	"net/http"
	"testing"

	"goclaw"
	"goclaw/internal/edge/client"
)

func TestMemory(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		f := &fake{}
		c := connect(gateway(f))
		found, err := c.SearchMemory(t.Context(), goclaw.MemoryQuery{Text: "x"})
		same(t, "nothing", goclaw.MemoryAnswer{Hits: []goclaw.MemoryHit{}}, found, err)
		f.memory = goclaw.MemoryAnswer{Note: "slow", Hits: []goclaw.MemoryHit{{Source: goclaw.MemoryFiles, Path: "MEMORY.md", Line: 1, EndLine: 2, Score: 0.5, Snippet: "a\nb", At: 3}}}
		found, err = c.SearchMemory(t.Context(), goclaw.MemoryQuery{Agent: "other", Text: "who & what?", Limit: 3, Sources: []goclaw.MemorySource{goclaw.MemoryFiles, goclaw.MemoryTranscripts}})
		same(t, "hits", f.memory, found, err)
		q, ok := f.asked[len(f.asked)-1].(goclaw.MemoryQuery)
		if !ok || q.Agent != "other" || q.Text != "who & what?" || q.Limit != 3 || len(q.Sources) != 2 || q.Now == 0 || q.Access.Session != goclaw.MainKey("other") {
			t.Errorf("%+v", q)
		}
		status, err := c.MemoryStatus(t.Context(), "")
		same(t, "status", goclaw.MemoryStatus{Agent: "main", Chunks: 3}, status, err)
		all, err := c.ReindexMemory(t.Context())
		same(t, "reindex", []goclaw.MemoryStatus{{Agent: "main", Chunks: 3}}, all, err)
		f.fail = goclaw.BadRequest("there is no agent")
		if _, err := c.SearchMemory(t.Context(), goclaw.MemoryQuery{Text: "x"}); err == nil {
			t.Error("no error")
		}
	})
	h := gateway(&fake{})
	for path, want := range map[string]int{
		"/api/memory/search?q=x": 200, "/api/memory/search": 400, "/api/memory/search?q=": 400, "/api/memory/search?q=x&limit=0": 400,
		"/api/memory/search?q=x&limit=51": 400, "/api/memory/search?q=x&source=y": 400, "/api/memory/search?q=x&to=y": 400, "/api/memory/status": 200,
		"/api/memory/status?agent=a&x=y": 400,
	} {
		if w := ask(h, "GET", path, "", map[string]string{"Authorization": "Bearer " + token}); w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
