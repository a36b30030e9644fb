package recall

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"goclaw/internal/core/recall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ablate = flag.Bool("ablate", false, "print what each sign of a match is worth")

// sections are the notes' sections by heading.
func sections(t *testing.T) map[string]string {
	t.Helper()
	names, err := noteFiles.ReadDir("notes")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, n := range names {
		text, err := noteFiles.ReadFile("notes/" + n.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n## ")[1:] {
			heading, body, _ := strings.Cut(part, "\n")
			all[heading] += body
		}
	}
	return all
}

// The questions avoid the words of their answers: of a question's words hardly
// any stands in the answer in any form, and of none of them more than a third.
// The fresh ones, which nobody worded anew after the first look, share some more.
func TestQuestionsUseOtherWords(t *testing.T) {
	notes := sections(t)
	tuning, held, fresh := questions()
	if len(notes) < 200 || len(tuning) < 50 || len(held) < 50 || len(fresh) < 60 {
		t.Fatalf("%d sections, %d, %d and %d questions", len(notes), len(tuning), len(held), len(fresh))
	}
	stems := recall.NewStemmer()
	asked := map[string]bool{}
	var share float64
	for _, q := range fresh {
		if _, ok := notes[q.heading]; !ok || slices.ContainsFunc(slices.Concat(tuning, held), func(o question) bool { return o.heading == q.heading }) {
			t.Errorf("%s: no such section, or asked about before", q.heading)
		}
	}
	all := slices.Concat(tuning, held)
	for _, q := range all {
		body, ok := notes[q.heading]
		if !ok || asked[q.text] {
			t.Errorf("%s: no such section, or asked twice: %s", q.heading, q.text)
		}
		asked[q.text] = true
		answer := stems.Terms(q.heading + " " + body)
		var same []string
		concepts := stems.Ask(q.text, time.Time{}, recall.Weights{}).Concepts
		for _, c := range concepts {
			if slices.Contains(answer, c.Term) {
				same = append(same, c.Word)
			}
		}
		part := float64(len(same)) / float64(len(concepts))
		share += part / float64(len(all))
		if part > 0.34 {
			t.Errorf("%s: %q shares %q with its answer", q.heading, q.text, same)
		}
	}
	t.Logf("%.1f%% of a question's words stand in its answer", 100*share)
	if share > 0.1 {
		t.Errorf("%.1f%% of a question's words stand in its answer", 100*share)
	}
}

// What docs/memory.md promises: better than plain FTS5 in each way, by a margin.
func TestBetterThanPlain(t *testing.T) {
	r, err := Run(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + r.Text())
	if len(r.Sets) != 3 || r.Embedding != "" || !strings.Contains(r.Text(), "No embedding model is configured") {
		t.Fatalf("%+v", r)
	}
	for i, set := range r.Sets {
		if len(set.Results) != 4 || set.Questions < 50 {
			t.Fatalf("%+v", set)
		}
		ours := set.Results[3]
		for _, plain := range set.Results[:3] {
			if i < 2 && (ours.At1 < 1.5*plain.At1 || ours.At5 < plain.At5+0.15) || ours.At1 < plain.At1-0.05 || ours.At5 < plain.At5-0.05 {
				t.Errorf("%s: %+v is not better than %+v", set.Name, ours, plain)
			}
		}
	}
}

// oracle is an embedding model that knows which note answers which question: it
// shows that vectors are used, and nothing about any real model.
type oracle struct{ answers, headings []string }

func (oracle) Model() string { return "fake/oracle" }

func (o oracle) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, len(o.headings)+1)
		vectors[i][len(o.headings)] = 0.1
		for j, h := range o.headings {
			title, _, _ := strings.Cut(text, "\n")
			if headingOf(title) == h || text == o.answers[j] {
				vectors[i][j] = 1
			}
		}
	}
	return vectors, nil
}

func TestFused(t *testing.T) {
	var o oracle
	tuning, _, _ := questions()
	for _, q := range tuning {
		o.answers, o.headings = append(o.answers, q.text), append(o.headings, q.heading)
	}
	r, err := Run(t.Context(), Options{Embedder: o, tuning: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range r.Sets {
		if len(set.Results) != 5 || r.Embedding != "fake/oracle" || r.Problem != "" || set.Results[4].At5 < 0.9 || set.Results[4].MRR <= set.Results[3].MRR {
			t.Error(r.Text())
		}
	}
	r, err = Run(t.Context(), Options{Embedder: failing{}, tuning: true})
	if err != nil || !strings.Contains(r.Problem, "out of order") || r.Sets[0].Results[4].MRR != r.Sets[0].Results[3].MRR {
		t.Errorf("%s, %v", r.Text(), err)
	}
}

type failing struct{}

func (failing) Model() string { return "fake/failing" }
func (failing) Embed(context.Context, []string) ([][]float32, error) {
	return nil, errors.New("out of order")
}

// TestAblation prints the table of docs/memory.md.
func TestAblation(t *testing.T) {
	if !*ablate {
		t.Skip("needs -ablate")
	}
	for _, tt := range []struct {
		name   string
		change func(*recall.Weights)
	}{
		{"all", func(*recall.Weights) {}},
		{"without built-in vectors", func(w *recall.Weights) { w.Sense = 0 }},
		{"without the thesaurus", func(w *recall.Weights) { w.NearMost = 0 }},
		{"without both", func(w *recall.Weights) { w.Sense, w.NearMost = 0, 0 }},
		{"without feedback", func(w *recall.Weights) { w.Feedback = 0 }},
		{"without coverage", func(w *recall.Weights) { w.Cover = 0 }},
		{"without headings", func(w *recall.Weights) { w.Title = 0 }},
		{"without names", func(w *recall.Weights) { w.Name = 1 }},
	} {
		w := recall.DefaultWeights()
		tt.change(&w)
		line := fmt.Sprintf("%-26s", tt.name)
		for _, tuning := range []bool{true, false} {
			r, err := Run(t.Context(), Options{weights: w, tuning: tuning})
			if err != nil {
				t.Fatal(err)
			}
			for _, set := range r.Sets {
				x := set.Results[len(set.Results)-1]
				line += fmt.Sprintf("  %5.1f%% %5.1f%% %.3f", 100*x.At1, 100*x.At5, x.MRR)
			}
		}
		t.Log(line)
	}
}
