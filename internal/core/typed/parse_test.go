package typed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"goclaw"
	"goclaw/internal/core/definition"
	"goclaw/internal/core/typed"
)

const answerForm = `{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"additionalProperties":false}`

var (
	anyJSON  = definition.Output{Format: "json"}
	formed   = definition.Output{Format: "json", Schema: json.RawMessage(answerForm)}
	plan     = definition.Output{Format: "xml", Tag: "plan"}
	stopping = definition.Output{Format: "xml", Tag: "plan", Stop: []string{"</plan>"}}
)

func TestParseJSON(t *testing.T) {
	for name, c := range map[string]struct {
		o       definition.Output
		reply   string
		want    string // the result, or what the error holds
		dropped int    // -1: an error
	}{
		"whole":            {formed, " {\"b\": \"<x>\", \"a\": 1}\n", `{"a":1,"b":"<x>"}`, 0},
		"mark":             {formed, "\ufeff{\"a\":1}", `{"a":1}`, 3},
		"chatter":          {formed, `Sure! {"a":1} Anything else?`, `{"a":1}`, 5 + 14},
		"fence":            {formed, "See:\n```json\n{\"a\": 1}\n```\nDone.", `{"a":1}`, 4 + 1 + 7 + 3 + 1 + 5},
		"fence wins":       {formed, "```json\n{\"a\":1}\n```\nnot {\"a\":2}", `{"a":1}`, 7 + 3 + 1 + 11},
		"last fence":       {formed, "```json\n{\"a\":1}\n```\n```JSON\n{\"a\":2}\n```", `{"a":2}`, -2},
		"plain fence":      {formed, "```\n{\"a\":1}\n```", `{"a":1}`, 6},
		"last":             {formed, `{"a":1} or rather {"a":2}`, `{"a":2}`, 17},
		"last that fits":   {formed, `{"a":1} as in [1] and {"c":3}`, `{"a":1}`, 21},
		"nested":           {formed, `{"x":{"a":1}}`, `"x" is not allowed`, -1},
		"broken before":    {formed, `use {x} and {"y": then {"a":1}`, `{"a":1}`, 22},
		"quote before":     {formed, `{" {"a":1}`, `{"a":1}`, 2},
		"strings":          {formed, `x {"a":1,"b":"}\"{]\\"} y`, `{"a":1,"b":"}\"{]\\"}`, 2},
		"fence in string":  {formed, "x {\"a\":1,\"b\":\"```json {}\"}", "{\"a\":1,\"b\":\"```json {}\"}", 1},
		"list":             {anyJSON, `so: [1, {"a":2}, 1e5, -0.10]`, `[1,{"a":2},1e5,-0.10]`, 3},
		"scalar":           {anyJSON, ` 12345678901234567890 `, `12345678901234567890`, 0},
		"scalar in fence":  {anyJSON, "It is\n```json\ntrue\n```", `true`, 16},
		"text":             {anyJSON, `"a"`, `"a"`, 0},
		"keys sorted":      {anyJSON, `{"z":1,"a":{"y":null,"b":[]}}`, `{"a":{"b":[],"y":null},"z":1}`, 0},
		"none":             {anyJSON, "I could not do it.", "there is no JSON in the reply", -1},
		"cut":              {anyJSON, `{"a": [1, 2`, "cut off, or not valid", -1},
		"trailing comma":   {anyJSON, `{"a":1,}`, "cut off, or not valid", -1},
		"wrong":            {formed, `{"a":"1"}`, "at /a: want integer, got string", -1},
		"inner, cut":       {anyJSON, `{"n":"outer","of":[{"n":"inner"}`, "cut off, or not valid", -1},
		"inner, comma":     {anyJSON, "{\"n\":1,\n\"of\":{\"n\":2},\n}", "line 3: invalid character '}'", -1},
		"inner, newline":   {anyJSON, "{\"n\":\"a\nb\",\"of\":{\"n\":2}}", "line 1: invalid character '\\n' in string literal", -1},
		"inner, word":      {anyJSON, `Here: {"of":{"n":2},"ok":True} and no more`, "invalid character 'T'", -1},
		"inner, fence":     {anyJSON, "```json\n{\"n\": oops, \"of\":{\"n\":2}}\n```", "invalid character 'o'", -1},
		"inner, bracket":   {anyJSON, `so [{"n":1}, {"n":2}}`, "cut off, or not valid", -1},
		"behind a broken":  {formed, `{"a":1,} is wrong, {"a":2} right`, `{"a":2}`, 23},
		"behind a fence":   {formed, "```json\n{\"a\":1,}\n```\nor rather\n```json\n{\"a\":2}\n```", `{"a":2}`, -2},
		"form in prose":    {formed, `It is {"a": 1, ...}: {"a":3}`, `{"a":3}`, 20},
		"too deep":         {anyJSON, strings.Repeat("[", 101) + strings.Repeat("]", 101), "deeper than 100", -1},
		"number too large": {formed, `{"a":1e999}`, "not valid", -1},
		"empty":            {anyJSON, "", "no JSON", -1},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := typed.Parse(c.o, false, c.reply, goclaw.StopEnd)
			if c.dropped == -1 {
				refused(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.Result != c.want || string(a.JSON) != c.want || a.Findings != nil {
				t.Errorf("%+v", a)
			}
			if c.dropped >= 0 && a.Dropped != c.dropped {
				t.Errorf("%d bytes dropped, want %d", a.Dropped, c.dropped)
			}
		})
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	var v *typed.Violation
	if !errors.As(err, &v) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line with %q", err, want)
	}
}

func TestParseXML(t *testing.T) {
	for name, c := range map[string]struct {
		o       definition.Output
		reply   string
		stop    goclaw.StopReason
		want    string
		dropped int
	}{
		"whole":              {plan, "<plan>x</plan>\n", "", "<plan>x</plan>", 0},
		"chatter":            {plan, "Here:\n<plan>x</plan> OK?", "", "<plan>x</plan>", 8},
		"attributes":         {plan, `<plan a="1 > 0" b='"'>x</plan >`, "", `<plan a="1 > 0" b='"'>x</plan >`, 0},
		"self closing":       {plan, `<plan a="/"/>`, "", `<plan a="/"/>`, 0},
		"nested":             {plan, "<plan><plan>a</plan><plan/><plan>b</plan></plan>!", "", "<plan><plan>a</plan><plan/><plan>b</plan></plan>", 1},
		"last":               {plan, "<plan>1</plan> no: <plan>2</plan>", "", "<plan>2</plan>", 18},
		"code":               {plan, "<plan>if a < b && c > d { x(\"<p\") }</plan>", "", "<plan>if a < b && c > d { x(\"<p\") }</plan>", 0},
		"other names":        {plan, "<planner></planner><plan>x<plans></plan>", "", "<plan>x<plans></plan>", 19},
		"mentioned":          {plan, "I write `<plan>` and \"</plan>\": <plan>a '<plan>' b</plan>", "", "<plan>a '<plan>' b</plan>", 31},
		"mentioned bare":     {plan, "A <plan> follows: <plan>x</plan>", "", "<plan>x</plan>", 17},
		"cdata":              {plan, "<plan><![CDATA[</plan>]]></plan>", "", "<plan><![CDATA[</plan>]]></plan>", 0},
		"cdata open":         {plan, "<plan><![CDATA[</plan>", "", "<plan><![CDATA[</plan>", 0},
		"in code span":       {plan, "`<plan>x</plan>`", "", "<plan>x</plan>", 2},
		"stray end":          {plan, "</plan><plan>x</plan>", "", "<plan>x</plan>", 7},
		"cut by stop":        {stopping, "OK\n<plan>\nx\n", goclaw.StopSequence, "<plan>\nx\n</plan>", 2},
		"cut, natural":       {stopping, "<plan>x", goclaw.StopEnd, "<plan>x</plan>", 0},
		"cut after mention":  {stopping, "My <plan> is\n<plan>x", goclaw.StopSequence, "<plan>x</plan>", 12},
		"cut after draft":    {stopping, "<plan>1</plan>\n<plan>2", goclaw.StopSequence, "<plan>2</plan>", 14},
		"draft and mention":  {stopping, "<plan>1</plan> that was the <plan>", goclaw.StopEnd, "<plan>1</plan>", 19},
		"stop not cut":       {stopping, "<plan>1</plan>", goclaw.StopSequence, "<plan>1</plan>", 0},
		"cut nested":         {stopping, "<plan>\n<plan>x", goclaw.StopSequence, "never closed", -1},
		"no stop declared":   {plan, "<plan>x", goclaw.StopSequence, "never closed", -1},
		"cut by tokens":      {stopping, "<plan>x", goclaw.StopMaxTokens, "cut off at the limit of tokens", -1},
		"whole, then tokens": {plan, "<plan>x</plan> and", goclaw.StopMaxTokens, "cut off at the limit of tokens", -1},
		"refusal":            {plan, "<plan>x</plan>", goclaw.StopRefusal, "refusal", -1},
		"none":               {plan, "plan", "", "there is no complete <plan>…</plan> in the reply", -1},
		"case":               {plan, "<Plan>x</Plan>", "", "there is no complete", -1},
		"open":               {plan, "<plan>x</pla", "", "never closed", -1},
		"unclosed tag":       {plan, "<plan x='>y</plan>", "", "there is no complete", -1},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := typed.Parse(c.o, false, c.reply, c.stop)
			if c.dropped == -1 {
				refused(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.Result != c.want || a.Dropped != c.dropped || a.JSON != nil || a.Findings != nil {
				t.Errorf("%+v", a)
			}
		})
	}
}

const one = `[{"claim":"c","evidence":"the <plan> tag, \"</findings>\"","confidence":"High"}]`

func TestFindings(t *testing.T) {
	found := []typed.Finding{{Claim: "c", Evidence: `the <plan> tag, "</findings>"`, Confidence: 0.9}}
	none := []typed.Finding{}
	open := definition.Output{Format: "json", Schema: json.RawMessage(`{"type":"object","properties":{"findings":{"type":"integer"}}}`)}
	list := definition.Output{Format: "json", Schema: json.RawMessage(`{"type":"array"}`)}
	for name, c := range map[string]struct {
		o       definition.Output
		reply   string
		want    string
		found   []typed.Finding // nil: an error
		dropped int
	}{
		"xml before":         {plan, "<findings>" + one + "</findings><plan>x</plan>", "<plan>x</plan>", found, 0},
		"xml behind":         {plan, "Hi. <plan>x</plan>\n<findings> " + one + "\n</findings> Bye.", "<plan>x</plan>", found, 7},
		"xml fenced":         {plan, "<findings>\n```json\n[]\n```\n</findings><plan>x</plan>", "<plan>x</plan>", none, 0},
		"xml inside":         {plan, "<plan><findings>[]</findings></plan>", "the findings are missing", nil, 0},
		"xml in findings":    {plan, `<findings>[{"claim":"<plan>y</plan>","evidence":"e","confidence":1}]</findings><plan>x</plan>`, "<plan>x</plan>", []typed.Finding{{"<plan>y</plan>", "e", 1}}, 0},
		"xml only findings":  {plan, `<findings>[{"claim":"<plan>y</plan>","evidence":"e","confidence":1}]</findings>`, "there is no complete <plan>", nil, 0},
		"xml last":           {plan, "<findings>[1]</findings><findings>[]</findings><plan>x</plan>", "<plan>x</plan>", none, 24},
		"json key":           {formed, `{"a":1,"findings":` + one + `}`, `{"a":1}`, found, 0},
		"json key, any":      {anyJSON, `{"findings":[]}`, `{}`, none, 0},
		"json block":         {formed, "<findings>" + one + "</findings>\n{\"a\":1}", `{"a":1}`, found, 0},
		"json block behind":  {formed, `{"a":1} <findings>[]</findings>`, `{"a":1}`, none, 0},
		"json list":          {list, "[2] <findings>[]</findings>", `[2]`, none, 0},
		"json own key":       {open, `<findings>[]</findings>{"findings":3}`, `{"findings":3}`, none, 0},
		"json own key alone": {open, `{"findings":3}`, "the findings are missing", nil, 0},
		"json list missing":  {list, "[2]", "the findings are missing", nil, 0},
		"text":               {definition.Output{}, "It is so.\n<findings>[]</findings>\n", "It is so.", none, 0},
		"text missing":       {definition.Output{}, "It is so.", "the findings are missing", nil, 0},
		"no list":            {formed, `{"a":1,"findings":{}}`, "no JSON list", nil, 0},
		"broken":             {plan, "<findings>[{]</findings><plan>x</plan>", "the findings are no JSON list (", nil, 0},
		"no claim":           {formed, `{"a":1,"findings":[{"claim":" ","evidence":"e","confidence":1}]}`, "at findings/0: claim is no text, or empty", nil, 0},
		"no evidence":        {formed, `{"a":1,"findings":[{"claim":"c","confidence":1}]}`, "at findings/0: evidence", nil, 0},
		"confidence":         {formed, `{"a":1,"findings":[{"claim":"c","evidence":"e","confidence":1.1}]}`, "at findings/0: confidence", nil, 0},
		"no confidence":      {formed, `{"a":1,"findings":[{"claim":"c","evidence":"e"}]}`, "at findings/0: confidence", nil, 0},
		"more":               {formed, `{"a":1,"findings":[{"claim":"c","evidence":"e","confidence":"low","x":1}]}`, `"x" is not allowed`, nil, 0},
		"no object":          {formed, `{"a":1,"findings":["c"]}`, "want an object", nil, 0},
		"both wrong":         {plan, "x", "there is no complete <plan>…</plan> in the reply; the findings are missing", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := typed.Parse(c.o, true, c.reply, goclaw.StopEnd)
			if c.found == nil {
				refused(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.Result != c.want || a.Dropped != c.dropped || !reflect.DeepEqual(a.Findings, c.found) {
				t.Errorf("%+v", a)
			}
		})
	}
	a, err := typed.Parse(definition.Output{}, false, " as it is <findings>[]</findings> ", goclaw.StopEnd)
	if err != nil || a.Result != "as it is <findings>[]</findings>" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestInstructionsAndRepair(t *testing.T) {
	if got := typed.Instructions(definition.Output{}, false); got != "" {
		t.Errorf("nothing to tell: %q", got)
	}
	for name, c := range map[string]struct {
		o        definition.Output
		findings bool
		has, not string
	}{
		"json":          {anyJSON, false, "one JSON value and nothing else", "findings"},
		"schema":        {formed, false, `"required":["a"]`, "findings"},
		"keyed":         {formed, true, `"required":["a","findings"]`, "<findings>"},
		"xml":           {plan, false, "<plan>…</plan>", "findings"},
		"xml, findings": {plan, true, "<findings>[{", "JSON Schema"},
		"text":          {definition.Output{}, true, "<findings>[{", "JSON Schema"},
	} {
		got := typed.Instructions(c.o, c.findings)
		if !strings.Contains(got, c.has) || strings.Contains(got, c.not) || strings.Contains(got, "{{") {
			t.Errorf("%s: %s", name, got)
		}
		_, err := typed.Parse(c.o, c.findings, `{"b":1,"more":2}`, goclaw.StopEnd)
		if err == nil {
			continue
		}
		m := typed.Repair(c.o, fmt.Errorf("step 3: %w", err))
		if text := m.PlainText(); m.Role != goclaw.RoleUser || !strings.Contains(text, got) || !strings.HasSuffix(text, "Reply with nothing else.") || !strings.Contains(text, "- ") {
			t.Errorf("%s: repair %s", name, text)
		}
	}
	_, err := typed.Parse(formed, false, `{"b":1,"more":2}`, goclaw.StopEnd)
	text := typed.Repair(formed, err).PlainText()
	for _, want := range []string{`- "a" (integer) is missing`, "- at /b: want string, got integer", `- "more" is not allowed; allowed: a, b`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if text := typed.Repair(plan, errors.New("a plain error")).PlainText(); !strings.Contains(text, "- a plain error") {
		t.Error(text)
	}
}

func TestReplySchema(t *testing.T) {
	for _, c := range []struct {
		o        definition.Output
		findings bool
		want     string
	}{
		{plan, false, ""},
		{anyJSON, true, ""},
		{formed, false, strings.Join(strings.Fields(answerForm), "")},
		{definition.Output{Format: "json", Schema: json.RawMessage(`{"type":"array"}`)}, true, ""},
		{definition.Output{Format: "json", Schema: json.RawMessage(`{"type":"object"}`)}, true,
			`{"properties":{"findings":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["claim","evidence","confidence"],"properties":{"claim":{"type":"string"},"evidence":{"type":"string"},"confidence":{"type":"number"}}}}},"required":["findings"],"type":"object"}`},
	} {
		if got := string(typed.ReplySchema(c.o, c.findings)); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
