package budget

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw"
)

// Token counts of these texts, measured with the tokenizers that OpenAI,
// Anthropic and Google published; each is the highest of them.
func TestWeighBoundsWhatTokenizersCount(t *testing.T) {
	for _, tt := range []struct {
		text   string
		tokens int
	}{
		{"Small packages, interfaces with their caller, and errors that say in one clear line what is wrong, where, and what to do about it.", 29},
		{"func (p Price) Cost(u goclaw.Usage) float64 {\n\tif p.Long != nil && u.Input > p.Long.Over {\n\t\tp = p.Long.price()\n\t}\n\treturn 0\n}\n", 57},
		{"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\",\"description\":\"the file\"},\"limit\":{\"type\":\"integer\",\"minimum\":1}}}", 30},
		{"github.com/google/go-cmp v0.7.0 h1:wk8382ETsv4JYUZwIsn6YpYiWiBsYLSJiTsyBybVuN8=", 47},
		{"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 58},
		{"018f3c2e-7b1d-7c3a-9d55-2f0a6b8c4e11", 36},
		{"3.14159,2.71828,-1.41421,0.57721\n1.61803,6.02214,-1.38064,9.10938\n", 64},
		{"drwxr-xr-x 2 root root  4096 Nov 21 13:42 internal\n-rw-r--r-- 1 root root 15707 Nov 21 13:42 go.sum\n", 59},
		{"这个系统从五个方面描述了同一个规范,并且说明了它们之间的分歧在哪里得到解决。", 40},
		{"Привет, мир! Это короткая проверка того, сколько токенов занимает текст.", 35},
		{"บทความนี้เน้นการลงมือใช้งานเลือกให้เหมาะกับงาน", 76},
		{"😀🎉🚀✨🧪", 13},
	} {
		if got := (weigh(tt.text) + 1) / 2; got < tt.tokens || got > 5*tt.tokens {
			t.Errorf("%.40q: bounded by %d, has %d tokens", tt.text, got, tt.tokens)
		}
	}
}

func TestEstimateCountsEveryPart(t *testing.T) {
	full := func() goclaw.ModelRequest {
		return goclaw.ModelRequest{
			System: []goclaw.SystemBlock{{Text: "system"}},
			Tools:  []goclaw.ToolSpec{{Name: "read", Description: "reads", Schema: []byte(`{}`)}},
			Stop:   []string{"stop"},
			Messages: []goclaw.Message{
				goclaw.Text(goclaw.RoleUser, "hello"),
				{Role: goclaw.RoleAssistant, Parts: []goclaw.Part{
					{Kind: goclaw.PartThinking, Text: "thinks", Opaque: "opaque"},
					{Kind: goclaw.PartToolCall, Call: &goclaw.ToolCall{ID: "call", Name: "read", Arguments: "path"}},
				}},
				{Role: goclaw.RoleUser, Parts: []goclaw.Part{
					{Kind: goclaw.PartToolResult, Result: &goclaw.ToolResult{CallID: "call", Name: "read", Content: "content"}},
				}},
			},
		}
	}
	base := Estimate(full())
	long := strings.Repeat("word ", 2000)
	for name, grow := range map[string]func(*goclaw.ModelRequest){
		"system":      func(r *goclaw.ModelRequest) { r.System[0].Text += long },
		"name":        func(r *goclaw.ModelRequest) { r.Tools[0].Name += long },
		"description": func(r *goclaw.ModelRequest) { r.Tools[0].Description += long },
		"schema":      func(r *goclaw.ModelRequest) { r.Tools[0].Schema = []byte(long) },
		"stop":        func(r *goclaw.ModelRequest) { r.Stop[0] += long },
		"text":        func(r *goclaw.ModelRequest) { r.Messages[0].Parts[0].Text += long },
		"thinking":    func(r *goclaw.ModelRequest) { r.Messages[1].Parts[0].Text += long },
		"opaque":      func(r *goclaw.ModelRequest) { r.Messages[1].Parts[0].Opaque += long },
		"call id":     func(r *goclaw.ModelRequest) { r.Messages[1].Parts[1].Call.ID += long },
		"call name":   func(r *goclaw.ModelRequest) { r.Messages[1].Parts[1].Call.Name += long },
		"arguments":   func(r *goclaw.ModelRequest) { r.Messages[1].Parts[1].Call.Arguments += long },
		"result id":   func(r *goclaw.ModelRequest) { r.Messages[2].Parts[0].Result.CallID += long },
		"result name": func(r *goclaw.ModelRequest) { r.Messages[2].Parts[0].Result.Name += long },
		"content":     func(r *goclaw.ModelRequest) { r.Messages[2].Parts[0].Result.Content += long },
	} {
		req := full()
		grow(&req)
		if got := Estimate(req) - base; got < 4900 || got > 5100 {
			t.Errorf("%s: 10000 bytes of words add %d tokens", name, got)
		}
	}
	one := goclaw.ModelRequest{Messages: []goclaw.Message{goclaw.Text(goclaw.RoleUser, "hi")}}
	if got := Estimate(one); got < 10 || got > 50 {
		t.Errorf("hi: %d tokens", got)
	}
	one.Tools = full().Tools
	if got := Estimate(one); got < toolPreamble {
		t.Errorf("with a tool: %d tokens", got)
	}
}

func TestEstimateAfter(t *testing.T) {
	if got := EstimateAfter(1000, Weigh()); got < 1000 || got > 1100 {
		t.Errorf("nothing new: %d", got)
	}
	if got := EstimateAfter(1000, 400); got < 1200 || got > 1300 {
		t.Errorf("400 bytes: %d", got)
	}
}

// A byte is at most one token, so the bound of any text is between half its
// bytes and all of them; and it never shrinks as the text grows.
func TestWeighIsBetweenOneAndTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if w := weigh(a); w < len(a) || w > 2*len(a) {
			t.Fatalf("%q of %d bytes weighs %d", a, len(a), w)
		}
		if weigh(a+b) < max(weigh(a), weigh(b)) {
			t.Fatalf("%q weighs less than its parts %q and %q", a+b, a, b)
		}
	})
}
