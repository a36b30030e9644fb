package typed_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/typed"
)

// jsonValue draws any JSON value, down to a depth.
func jsonValue(depth int) *rapid.Generator[any] {
	awkward := rapid.SampledFrom([]string{"}", "{", "\"", "\\", "]", "```", "```json\n{}\n```", "<findings>[]</findings>", "</plan>", "a\nb", "\u2028", "{\"a\":1}"})
	text := rapid.OneOf(rapid.String(), awkward)
	scalars := []*rapid.Generator[any]{
		text.AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	return rapid.OneOf(append(scalars,
		rapid.SliceOfN(jsonValue(depth-1), 0, 4).AsAny(), rapid.MapOfN(text, jsonValue(depth-1), 0, 4).AsAny())...)
}

// chatter draws text with braces and quotes in it that holds no JSON value, and
// none together with what stands beside it.
func chatter() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{"so", "{x", "x}", "\"", "'", "`", "[see", "note]", "\\", "{\"k\":", "<b>", "a<b", "{{name}}", "\n", "\"quoted {x}\"", "ü", "```", "it's"})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 0, 8).Draw(t, "words"), " ") + " so "
	})
}

func encode(t *rapid.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(rapid.Bool().Draw(t, "escaped"))
	if rapid.Bool().Draw(t, "indented") {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func sameJSON(t *rapid.T, got, want []byte) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// TestAnyJSONIsFound: an object or list anywhere in chatter is the answer, byte
// counts included, and any value in a fence.
func TestAnyJSONIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := jsonValue(3).Draw(t, "value")
		before, after := chatter().Draw(t, "before"), chatter().Draw(t, "after")
		switch v.(type) {
		case []any, map[string]any:
		default:
			before, after = before+"\n```json\n", "\n```\n"+after
		}
		raw := encode(t, v)
		a, err := typed.Parse(anyJSON, false, before+string(raw)+" so "+after, goclaw.StopEnd)
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, a.JSON, raw)
		if want := len(strings.TrimSpace(before)) + len(strings.TrimSpace(" so "+after)); a.Dropped != want {
			t.Fatalf("%d bytes dropped, want %d", a.Dropped, want)
		}
		again, err := typed.Parse(anyJSON, false, a.Result, goclaw.StopEnd)
		if err != nil || again.Result != a.Result || again.Dropped != 0 {
			t.Fatalf("canonical form is not stable: %s, then %s (%v)", a.Result, again.Result, err)
		}
	})
}

// TestFindingsAreFound: with any findings beside or inside of any object.
func TestFindingsAreFound(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`[ -~]{1,20}`), rapid.SampledFrom([]string{"</findings>", "<plan>x</plan>", "{\"a\":1}", "```"})).Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
	finding := rapid.Custom(func(t *rapid.T) typed.Finding {
		return typed.Finding{Claim: text.Draw(t, "claim"), Evidence: text.Draw(t, "evidence"), Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence")}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(finding, 0, 3).Draw(t, "findings")
		object := rapid.MapOfN(rapid.StringMatching(`[a-e]{1,2}`), jsonValue(2), 0, 3).Draw(t, "object")
		list := encode(t, want)
		block := "<findings>" + string(list) + "</findings>"
		var reply string
		o := anyJSON
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			reply = block + "\nso " + string(encode(t, object))
		case 1:
			reply = string(encode(t, object)) + " so " + block
		case 2:
			object["findings"] = want
			reply = string(encode(t, object))
			delete(object, "findings")
		case 3:
			o = plan
			reply = block + "<plan>x</plan>"
		}
		a, err := typed.Parse(o, true, reply, goclaw.StopEnd)
		if err != nil {
			t.Fatalf("%s: %v", reply, err)
		}
		if !reflect.DeepEqual(a.Findings, want) {
			t.Fatalf("got %v, want %v", a.Findings, want)
		}
		if a.JSON != nil {
			sameJSON(t, a.JSON, encode(t, object))
		}
	})
}

// xmlBody draws what may stand in an element: markup in which tags of the
// root's name pair.
func xmlBody(depth int) *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.StringMatching(`[a-z {}"'&\n]{0,12}`),
		rapid.SampledFrom([]string{"if a < b {", "<step id=\"1\">do</step>", "<br/>", "</other>", "<planner>", "`<plan>`", "\"</plan>\"", "<![CDATA[</plan>]]>", "{\"a\": [1]}", "<findings>[]</findings>", "<plan a='>'/>"}))
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(piece, 0, 5).Draw(t, "parts")
		if depth > 0 && rapid.Bool().Draw(t, "nested") {
			parts = append(parts, " <plan>", xmlBody(depth-1).Draw(t, "inner"), " </plan> ")
		}
		return strings.Join(parts, " ")
	})
}

// TestAnyXMLIsFound: an element with any body anywhere in chatter is the
// answer, byte for byte, also where a stop sequence cut its end off.
func TestAnyXMLIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := chatter().Draw(t, "before"), chatter().Draw(t, "after")
		element := "<plan" + rapid.SampledFrom([]string{"", ` a="x > y"`, "\n"}).Draw(t, "attributes") + "> " + xmlBody(2).Draw(t, "body") + " </plan>"
		a, err := typed.Parse(plan, false, before+element+" "+after, goclaw.StopEnd)
		if err != nil {
			t.Fatal(err)
		}
		if a.Result != element || a.Dropped != len(strings.TrimSpace(before))+len(strings.TrimSpace(after)) {
			t.Fatalf("%+v\nwant %q", a, element)
		}
		cut := strings.TrimSuffix(element, "</plan>")
		if strings.Contains(cut, "</plan>") {
			return // the server would have stopped there
		}
		if a, err = typed.Parse(stopping, false, before+"\n"+cut, goclaw.StopSequence); err != nil || a.Result != element {
			t.Fatalf("cut: %+v %v\nwant %q", a, err, element)
		}
		for _, o := range []definition.Output{plan, stopping} {
			if a, err = typed.Parse(o, false, before+cut, goclaw.StopMaxTokens); err == nil {
				t.Fatalf("cut by the limit of tokens: %+v", a)
			}
		}
	})
}

// TestLongReplies: what looks like JSON or markup at every byte is read to its
// end. With a cost that grew with the square of the length it would not be.
func TestLongReplies(t *testing.T) {
	for _, unit := range []string{"[", `{"a":`, `["`, `[",",`, `"[{`, "<plan>", "<plan ", "<![CDATA[", "<findings>", "</plan", "```json\n[", "{{", `\"[`, `<plan "`, "[1,"} {
		t.Run(unit, func(t *testing.T) {
			reply := strings.Repeat(unit, 400_000/len(unit))
			for _, o := range []definition.Output{anyJSON, formed, plan, stopping} {
				for _, r := range []string{reply, "<plan>" + reply + "]]></findings>"} {
					a, err := typed.Parse(o, true, r, goclaw.StopSequence)
					check(t, o, true, r, goclaw.StopSequence, a, err)
				}
			}
			if got, err := typed.FillGlob("x"+reply, json.RawMessage(reply)); got != "x"+reply || err != nil {
				t.Errorf("filled: %d bytes, %v", len(got), err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, reply := range []string{
		`x {"a":1} [2]`, "```json\n{\"a\":1}\n```", `{"a":1,"findings":` + one + `}`, "<findings>" + one + "</findings><plan a='>'>x</plan>",
		"<plan>\nx", "<plan><![CDATA[</plan>]]>", `{"a":"\u00e9\"}`, "[1e999, -0.0e-1]",
	} {
		f.Add(reply, answerForm, "</plan>", true)
		f.Add(reply, "", "", false)
	}
	f.Fuzz(func(t *testing.T, reply, form, stop string, findings bool) {
		for _, o := range []definition.Output{
			{}, {Format: "json", Schema: json.RawMessage(form)}, {Format: "xml", Tag: "plan", Stop: []string{stop}},
		} {
			for _, reason := range []goclaw.StopReason{goclaw.StopEnd, goclaw.StopSequence, goclaw.StopMaxTokens} {
				a, err := typed.Parse(o, findings, reply, reason)
				check(t, o, findings, reply, reason, a, err)
			}
		}
	})
}

func check(t *testing.T, o definition.Output, findings bool, reply string, reason goclaw.StopReason, a typed.Answer, err error) {
	t.Helper()
	switch {
	case err != nil && (strings.ContainsAny(err.Error(), "\n\r") || strings.TrimSpace(err.Error()) == ""):
		t.Errorf("the error is %q", err)
	case err != nil:
		if !strings.HasSuffix(typed.Repair(o, err).PlainText(), "Reply with nothing else.") {
			t.Error("the repair has no end")
		}
		return
	case reason == goclaw.StopMaxTokens:
		t.Errorf("cut off, and accepted: %+v", a)
	case a.Dropped < 0 || a.Dropped > len(reply) || findings != (a.Findings != nil):
		t.Errorf("%+v", a)
	}
	if o.Format == "" {
		return
	}
	again, err := typed.Parse(o, false, a.Result, goclaw.StopEnd)
	if err != nil || again.Result != a.Result || again.Dropped != 0 {
		t.Errorf("%q is not read as itself: %q, %v", a.Result, again.Result, err)
	}
	if o.Format == "json" && !json.Valid(a.JSON) {
		t.Errorf("no JSON: %q", a.JSON)
	}
}

func FuzzRepair(f *testing.F) {
	f.Add("plan", answerForm, "a problem\nin {{form}} lines", true)
	f.Fuzz(func(t *testing.T, tag, form, problem string, findings bool) {
		for _, o := range []definition.Output{{}, {Format: "json", Schema: json.RawMessage(form)}, {Format: "xml", Tag: tag}} {
			err := &typed.Violation{Problems: []string{problem, problem, "c", "d", "e", "the sixth", "g"}, Findings: findings}
			text := typed.Repair(o, err).PlainText()
			if strings.Count(text, "\n- ") < 5 || strings.Contains(text, "\n- the sixth") && !strings.Contains(problem+form, "the sixth") || !strings.HasSuffix(text, "Reply with nothing else.") {
				t.Errorf("%q", text)
			}
			if raw := typed.ReplySchema(o, findings); raw != nil && json.Valid([]byte(form)) && !json.Valid(raw) {
				t.Errorf("%q", raw)
			}
		}
	})
}
