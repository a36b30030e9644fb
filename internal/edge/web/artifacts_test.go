package web_test

import (
	"errors"
	"net/http"
	"testing"

	"goclaw"
	"goclaw/internal/edge/client"
)

func TestArtifactsRoundTrip(t *testing.T) {
	plan := goclaw.Artifact{Run: "5eb436d5-12e9", Name: "plans/ä b#1?.md", SHA256: "abc", Size: 3, MediaType: "text/markdown", CreatedAt: 7}
	page := goclaw.Artifact{Run: "r/2", Name: "page.html", SHA256: "def", MediaType: "text/html"}
	odd := goclaw.Artifact{Run: "r", Name: "odd", MediaType: "no\ntype"}
	eachTransport(t, func(t *testing.T, connect func(http.Handler) *client.Client) {
		f := &fake{left: []goclaw.Artifact{plan, page, odd}}
		c, ctx := connect(gateway(f)), t.Context()
		q := goclaw.ArtifactFilter{Run: "5eb4", Session: mainKey, Root: "t", Name: "n/m", Limit: 3}
		infos, err := c.Artifacts(ctx, q)
		same(t, "Artifacts", []goclaw.ArtifactInfo{plan.Info(), page.Info(), odd.Info()}, infos, err)
		same(t, "handle", "artifact:5eb436d5/plans/ä b#1?.md", infos[0].Handle, nil)
		for _, a := range f.left {
			data, err := c.Artifact(ctx, a.Run, a.Name)
			same(t, a.Name, "content of "+a.Name+"\x00", string(data), err)
		}
		if _, err := c.Artifact(ctx, "r", "none"); !errors.Is(err, goclaw.ErrNotFound) {
			t.Error(err)
		}
		same(t, "asked", []any{q, [2]string{plan.Run, plan.Name}, [2]string{page.Run, page.Name}, [2]string{"r", "odd"}, [2]string{"r", "none"}}, f.asked, nil)
		f.left = nil
		infos, err = c.Artifacts(ctx, goclaw.ArtifactFilter{})
		same(t, "no artifacts", []goclaw.ArtifactInfo{}, infos, err)
	})

	h := gateway(&fake{left: []goclaw.Artifact{plan, page, odd}})
	for path, want := range map[string][2]string{
		"/api/artifacts/5eb436d5-12e9/plans/%C3%A4%20b%231%3F.md": {"text/markdown", `attachment; filename*=utf-8''%C3%A4%20b#1%3F.md`},
		"/api/artifacts/r%2F2/page.html":                          {"text/html", "attachment; filename=page.html"},
		"/api/artifacts/r/odd":                                    {"application/octet-stream", "attachment; filename=odd"},
	} {
		w := ask(h, "GET", path, "", nil)
		if got := w.Header(); w.Code != 200 || got.Get("Content-Type") != want[0] || got.Get("Content-Disposition") != want[1] {
			t.Errorf("%s: %d %v", path, w.Code, got)
		}
		checkProtection(t, path, w.Header())
	}
	for path, code := range map[string]int{
		"/api/artifacts?runs=x": 400, "/api/artifacts?limit=0": 400, "/api/artifacts?session=x": 400, "/api/artifacts/r/": 404,
	} {
		if w := ask(h, "GET", path, "", nil); w.Code != code {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
