package frontmatter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML reads a frontmatter that begins on a line of its file. It returns
// either fields or problems.
func parseYAML(text string, line int) (fields []Field, problems []Problem) {
	if p := tooDeep(text, line); p != nil {
		return nil, []Problem{*p}
	}
	c := &converter{base: line - 1, lines: strings.Split(text, "\n"), anchors: map[string]ast.Node{}}
	defer func() {
		if r := recover(); r != nil {
			fields, problems = nil, []Problem{{line, 1, fmt.Sprintf("the YAML library failed on this text: %v", r), "simplify it: plain keys, quoted texts, lists in brackets"}}
		}
	}()
	// Duplicate keys are found below, all of them and with both places.
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, []Problem{c.syntax(err)}
	}
	fields = c.top(file)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return fields, nil
}

// tooDeep refuses what would make the library recurse without a bound. It looks
// at brackets and indicators wherever they stand, so it is coarser than MaxDepth.
func tooDeep(text string, line int) *Problem {
	const most = 200
	for i, l := range strings.Split(text, "\n") {
		open := strings.Count(l, "[") + strings.Count(l, "{")
		lead := len(l) - len(strings.TrimLeft(l, " -?:!&*\t"))
		if open > most && open-strings.Count(l, "]")-strings.Count(l, "}") > most || lead > 4*most {
			return &Problem{line + i, 1, "the YAML is nested too deeply", fmt.Sprintf("%d levels are allowed", MaxDepth)}
		}
	}
	open := strings.Count(text, "[") + strings.Count(text, "{") - strings.Count(text, "]") - strings.Count(text, "}")
	if open > most {
		return &Problem{line, 1, "the YAML is nested too deeply, or brackets are not closed", fmt.Sprintf("%d levels are allowed", MaxDepth)}
	}
	return nil
}

// converter turns the library's tree into values.
type converter struct {
	base     int // lines of the file before the frontmatter
	lines    []string
	anchors  map[string]ast.Node
	values   int
	problems []Problem
}

func (c *converter) syntax(err error) Problem {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return Problem{c.base + 1, 1, "not valid YAML: " + firstLine(err.Error()), "check quotes, colons and indentation"}
	}
	line, col := c.at(y.GetToken())
	message, hint := plainly(y.GetMessage())
	return Problem{line, col, "not valid YAML: " + message, hint}
}

// plainly words what the library says for someone who writes three lines of YAML
// a month.
func plainly(message string) (what, hint string) {
	for _, w := range [...]struct{ said, what, hint string }{
		{"mapping value is not allowed", "a second colon in an unquoted value", "put the value in quotes"},
		{"value is not allowed in this context", "text follows where a value has ended", "put the whole value in quotes"},
		{"reserved character", message, "put the value in quotes"},
		{"alias", "an unquoted * stands for something else in YAML", "put the value in quotes"},
		{"unexpected scalar value type", "an unquoted *, & or ! stands for something else in YAML", "put the value in quotes"},
		{"block sequence entries", "a list begins behind its key", "begin it on the next line, or write it in brackets"},
		{"non-map value is specified", "this line is no `key: value`", "if it belongs to the text above it, write that key with a bar (`key: |`) and indent the whole text below it"},
		{"end character of double-quoted", "a double quote opens and does not close", "close it, or write the text below `key: |`"},
		{"end character of single-quoted", "a single quote opens and does not close", "close it, or write the text below `key: |`"},
		{"invalid header option", "text stands behind a > or | that begins a block", "put the text on the next lines, indented, or the whole value in quotes"},
		{"directive value", "an unquoted % stands for something else in YAML", "put the value in quotes"},
		{"flow map", "a brace opens a map, and this is none", "put the value in quotes"},
		{"'\t' that cannot start", "a tab where YAML wants spaces", "indent with spaces"},
	} {
		if strings.Contains(message, w.said) {
			return w.what, w.hint
		}
	}
	return message, "check quotes, colons and indentation"
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func (c *converter) at(tk *token.Token) (line, col int) {
	if tk == nil || tk.Position == nil {
		return c.base + 1, 1
	}
	return c.base + max(tk.Position.Line, 1), max(tk.Position.Column, 1)
}

// fail records a problem; the first hundred are enough for anyone.
func (c *converter) fail(tk *token.Token, message, hint string) {
	if len(c.problems) < 100 {
		line, col := c.at(tk)
		c.problems = append(c.problems, Problem{line, col, message, hint})
	}
}

func (c *converter) top(file *ast.File) []Field {
	var body ast.Node
	for _, doc := range file.Docs {
		switch n := doc.Body.(type) {
		case nil:
		case *ast.DirectiveNode:
			c.fail(n.GetToken(), "a YAML directive has no place here", "remove the line")
			return nil
		default:
			if body != nil {
				c.fail(n.GetToken(), "a second YAML document begins here", "write one only")
				return nil
			}
			body = n
		}
	}
	switch n := body.(type) {
	case nil:
		return []Field{}
	case *ast.MappingNode, *ast.MappingValueNode:
		v := c.value(n, 0)
		if v.Fields == nil {
			v.Fields = []Field{}
		}
		return v.Fields
	default:
		if _, ok := n.(*ast.NullNode); ok {
			return []Field{}
		}
		c.fail(n.GetToken(), "the YAML is no map of keys", "write one `key: value` per line")
		return nil
	}
}

// value converts a node, and says no to what this package doesn't read.
func (c *converter) value(n ast.Node, depth int) Value {
	if c.values++; c.values > MaxValues {
		if c.values == MaxValues+1 {
			c.fail(n.GetToken(), fmt.Sprintf("more than %d values", MaxValues), "shorten it")
		}
		return Value{}
	}
	if depth > MaxDepth {
		c.fail(n.GetToken(), "the YAML is nested too deeply", fmt.Sprintf("%d levels are allowed", MaxDepth))
		return Value{}
	}
	v := Value{}
	v.Line, v.Col = c.at(start(n))
	switch n := n.(type) {
	case *ast.NullNode:
		v.Text = n.GetToken().Value
	case *ast.StringNode:
		v.Kind, v.Text = String, n.Value
		v.Quoted = n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
		if !v.Quoted {
			v.Col = c.mend(v)
		}
	case *ast.LiteralNode:
		v.Kind, v.Text = String, n.Value.Value
	case *ast.BoolNode:
		v.Kind, v.Text, v.Bool = Bool, n.Token.Value, n.Value
	case *ast.IntegerNode:
		c.integer(&v, n)
	case *ast.FloatNode:
		v.Kind, v.Text, v.Float = Float, n.Token.Value, n.Value
	case *ast.InfinityNode, *ast.NanNode:
		c.fail(n.GetToken(), "not a finite number", "write a number, or quote it if it is a text")
	case *ast.SequenceNode:
		v.Kind, v.Items = List, make([]Value, 0, len(n.Values))
		for _, item := range n.Values {
			v.Items = append(v.Items, c.value(item, depth+1))
		}
	case *ast.MappingNode:
		v.Kind, v.Fields = Map, c.fields(n.Values, depth)
	case *ast.MappingValueNode:
		v.Kind, v.Fields = Map, c.fields([]*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode:
		return c.anchor(n, depth)
	case *ast.AliasNode:
		return c.alias(n, depth)
	case *ast.TagNode:
		c.fail(n.Start, "YAML tags such as "+n.Start.Value+" are not read here", "remove the tag, or quote the value")
	default:
		c.fail(n.GetToken(), fmt.Sprintf("YAML of the kind %s is not read here", n.Type()), "write a text, a number, a list or a map")
	}
	return v
}

// mend corrects the library's column of an unquoted text, which is off by the
// blanks that follow it on its line.
func (c *converter) mend(v Value) int {
	i := v.Line - c.base - 1
	if i >= len(c.lines) {
		return v.Col
	}
	line := c.lines[i]
	word, _, _ := strings.Cut(v.Text, " ")
	col := v.Col - (len(line) - len(strings.TrimRight(line, " \t")))
	if runes := []rune(line); word != "" && col > 0 && col <= len(runes) && strings.HasPrefix(string(runes[col-1:]), word) {
		return col
	}
	return v.Col
}

func (c *converter) integer(v *Value, n *ast.IntegerNode) {
	v.Kind, v.Text = Int, n.Token.Value
	switch i := n.Value.(type) {
	case int64:
		v.Int, v.Float = i, float64(i)
	case uint64:
		if i > 1<<63-1 {
			v.Kind, v.Float = Float, float64(i)
			return
		}
		v.Int, v.Float = int64(i), float64(i)
	default:
		if f, err := strconv.ParseFloat(n.Token.Value, 64); err == nil {
			v.Kind, v.Float = Float, f
			return
		}
		c.fail(n.Token, "not a number that can be read", "quote it if it is a text")
	}
}

// start is the first token of a node: a map begins at its first key.
func start(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return start(n.Values[0])
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	case *ast.SequenceNode:
		return n.Start
	}
	return n.GetToken()
}

func (c *converter) fields(nodes []*ast.MappingValueNode, depth int) []Field {
	fields := make([]Field, 0, len(nodes))
	seen := make(map[string]Field, len(nodes))
	for _, n := range nodes {
		tk := n.Key.GetToken()
		key, ok := keyText(n.Key)
		if _, merge := n.Key.(*ast.MergeKeyNode); merge {
			c.fail(tk, "YAML merge keys (<<) are not read here", "write the keys out")
			continue
		}
		if !ok {
			c.fail(tk, "this key is no plain text", "write a plain or quoted word before the colon")
			continue
		}
		line, col := c.at(tk)
		if earlier, dup := seen[key]; dup {
			c.fail(tk, fmt.Sprintf("the key %q stands twice; first on line %d", key, earlier.Line), "keep one of them")
			continue
		}
		f := Field{Key: key, Line: line, Col: col, Value: c.value(n.Value, depth+1)}
		if n.Value.GetToken().Type == token.ImplicitNullType {
			f.Value.Line, f.Value.Col = c.at(n.Start)
			f.Value.Col++ // behind the colon
		}
		seen[key] = f
		fields = append(fields, f)
	}
	return fields
}

func keyText(key ast.MapKeyNode) (string, bool) {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode:
		return k.Token.Value, true
	case *ast.FloatNode:
		return k.Token.Value, true
	case *ast.BoolNode:
		return k.Token.Value, true
	case *ast.NullNode:
		return k.Token.Value, true
	}
	return "", false
}

func (c *converter) anchor(n *ast.AnchorNode, depth int) Value {
	v := c.value(n.Value, depth+1)
	c.anchors[n.Name.GetToken().Value] = n.Value
	return v
}

// alias converts what it stands for again, so that following aliases counts
// against the bounds. An anchor is known only after its own value, so none can
// hold itself.
func (c *converter) alias(n *ast.AliasNode, depth int) Value {
	name := n.Value.GetToken().Value
	target, ok := c.anchors[name]
	if !ok {
		c.fail(n.Start, fmt.Sprintf("*%s stands for nothing: no &%s comes before it", name, name), "put the value in quotes if the asterisk belongs to the text")
		return Value{}
	}
	return c.value(target, depth+1)
}
