package frontmatter_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/internal/core/frontmatter"
)

func ExampleParse() {
	doc, problems := frontmatter.Parse([]byte("---\nname: scout\ndescription: Use when: always\n---\nYou scout.\n"))
	fmt.Println(problems)
	for _, f := range doc.Fields {
		fmt.Printf("%d:%d %s = %s\n", f.Line, f.Col, f.Key, f.Value.Text)
	}
	fmt.Printf("%q from line %d\n", doc.Body, doc.BodyLine)
	for _, w := range doc.Warnings {
		fmt.Printf("%d:%d %s\n", w.Line, w.Col, w.Message)
	}
	// Output:
	// []
	// 2:1 name = scout
	// 3:1 description = Use when: always
	// "You scout.\n" from line 5
	// 3:14 the value holds a colon and is not quoted; it was read as one text to the end of the line
}

// outline renders values as `line:col key=value`, one a line.
func outline(fields []frontmatter.Field) string {
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, "%d:%d %s=", f.Line, f.Col, f.Key)
		render(&b, f.Value)
		b.WriteByte('\n')
	}
	return b.String()
}

func render(b *strings.Builder, v frontmatter.Value) {
	fmt.Fprintf(b, "%d:%d ", v.Line, v.Col)
	switch v.Kind {
	case frontmatter.List:
		b.WriteString("[")
		for _, item := range v.Items {
			render(b, item)
			b.WriteString("; ")
		}
		b.WriteString("]")
	case frontmatter.Map:
		fmt.Fprintf(b, "{%s}", outline(v.Fields))
	default:
		fmt.Fprintf(b, "%s %q", v.Kind, v.Text)
	}
}

func TestValues(t *testing.T) {
	for _, tc := range []struct{ name, file, want, body string }{
		{"nothing", "---\n---\n", "", ""},
		{"a comment", "---\n# none\n---\nx", "", "x"},
		{"texts", "---\na: x y\nb: 'it''s'\nc: \"q\\n\"\n---\n", "2:1 a=2:4 a string \"x y\"\n3:1 b=3:4 a string \"it's\"\n4:1 c=4:4 a string \"q\\n\"\n", ""},
		{"blocks", "---\na: |\n  x\n  y\nb: >-\n  x\n  y\n---\n", "2:1 a=2:4 a string \"x\\ny\\n\"\n5:1 b=5:4 a string \"x y\"\n", ""},
		{"scalars", "---\na: 1\nb: 0.5\nc: true\nd: ~\ne:\nf: yes\n---\n", "2:1 a=2:4 a whole number \"1\"\n3:1 b=3:4 a number \"0.5\"\n4:1 c=4:4 a boolean \"true\"\n5:1 d=5:4 null \"~\"\n6:1 e=6:3 null \"null\"\n7:1 f=7:4 a string \"yes\"\n", ""},
		{"a list", "---\na: [x, 'y']\nb:\n  - z\n---\n", "2:1 a=2:4 [2:5 a string \"x\"; 2:8 a string \"y\"; ]\n3:1 b=4:3 [4:5 a string \"z\"; ]\n", ""},
		{"a map", "---\na: {x: 1}\nb:\n  y: 2\n---\n", "2:1 a=2:4 {2:5 x=2:8 a whole number \"1\"\n}\n3:1 b=4:3 {4:3 y=4:6 a whole number \"2\"\n}\n", ""},
		{"an alias", "---\na: &n x\nb: *n\n---\n", "2:1 a=2:7 a string \"x\"\n3:1 b=2:7 a string \"x\"\n", ""},
		{"a byte order mark", "\ufeff---\na: x\n---\nbody", "2:1 a=2:4 a string \"x\"\n", "body"},
		{"CRLF", "---\r\na: x\r\nb: |\r\n  y\r\n---\r\nbody\r\n", "2:1 a=2:4 a string \"x\"\n3:1 b=3:4 a string \"y\\n\"\n", "body\r\n"},
		{"blanks after the delimiters", "--- \na: x\n---\t\nbody", "2:1 a=2:4 a string \"x\"\n", "body"},
		{"blanks after the value", "---\na: x   \n---\n", "2:1 a=2:4 a string \"x\"\n", ""},
		{"other characters before", "---\na: [é, ü, x]\n---\n", "2:1 a=2:4 [2:5 a string \"é\"; 2:8 a string \"ü\"; 2:11 a string \"x\"; ]\n", ""},
		{"rules in the body", "---\na: x\n---\n---\n\n---\n", "2:1 a=2:4 a string \"x\"\n", "---\n\n---\n"},
		{"no newline at the end", "---\na: x\n---", "2:1 a=2:4 a string \"x\"\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc, problems := frontmatter.Parse([]byte(tc.file))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tc.want, outline(doc.Fields)); diff != "" {
				t.Error(diff)
			}
			if doc.Body != tc.body || len(doc.Warnings) > 0 {
				t.Errorf("body %q, warnings %v", doc.Body, doc.Warnings)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	big := strings.Repeat("x", frontmatter.MaxFile)
	for _, tc := range []struct{ name, file, want string }{
		{"empty", " \n", "1:1 the file is empty"},
		{"no frontmatter", "# Title\n", "1:1 the file has no frontmatter"},
		{"a fence", "```markdown\n---\na: x\n---\n```\n", "1:1 the file begins with a code fence, not with a frontmatter"},
		{"TOML", "+++\n", "1:1 the frontmatter is TOML (+++)"},
		{"JSON", "{\"name\": 1}", "1:1 the file is JSON, not markdown with a frontmatter"},
		{"four dashes", "----\na: x\n---\n", "1:1 the opening delimiter has 4 dashes"},
		{"long dashes", "———\na: x\n---\n", "1:1 the opening delimiter is made of other dashes"},
		{"indented", "  ---\na: x\n---\n", "1:1 the opening --- is indented"},
		{"on one line", "--- a: x\n---\n", "1:1 text follows the opening --- on its line"},
		{"never closed", "---\na: x\n", "1:1 the frontmatter that opens here has no closing ---"},
		{"closed by more dashes", "---\na: x\n------\nbody", "3:1 the closing delimiter has 6 dashes"},
		{"closed by dots", "---\na: x\n...\nbody", "3:1 the frontmatter is closed by ..."},
		{"closed by an indented line", "---\na: x\n ---\nbody", "3:1 the closing --- is indented"},
		{"closed with text", "---\na: x\n---body", "3:1 text follows the closing --- on its line"},
		{"too big", "---\na: x\n---\n" + big, "1:1 the file has 1048589 bytes; 1048576 are allowed"},
		{"too big a head", "---\na: |\n" + strings.Repeat("  x\n", 20_000) + "---\n", "2:1 the frontmatter has 80005 bytes; 65536 are allowed"},
		{"UTF-16", "\xff\xfe-\x00", "1:1 the file is UTF-16"},
		{"not UTF-8", "---\na: x\n---\né \xff", "4:3 the file is not text: the byte 0xff is no UTF-8"},
		{"binary", "---\na: x\x00\n---\n", "2:5 the file is not text: a zero byte"},
		{"twice", "---\na: x\nb: y\na: z\n---\n", `4:1 the key "a" stands twice; first on line 2`},
		{"twice below", "---\na: {x: 1, x: 2}\n---\n", `2:11 the key "x" stands twice; first on line 2`},
		{"a list", "---\n- a\n---\n", "2:1 the YAML is no map of keys"},
		{"a text", "---\nhello\n---\n", "2:1 the YAML is no map of keys"},
		{"a tag", "---\na: !!str x\n---\n", "2:4 YAML tags such as !!str are not read here"},
		{"a merge key", "---\n<<: {a: x}\n---\n", "2:1 YAML merge keys (<<) are not read here"},
		{"an unknown alias", "---\na: *b\n---\n", "2:4 *b stands for nothing: no &b comes before it"},
		{"two documents", "---\na: x\n...\nb: y\n---\n", "4:2 a second YAML document begins here"},
		{"infinity", "---\na: .inf\n---\n", "2:4 not a finite number"},
		{"an open quote", "---\na: \"x\nb: y\n---\n", "2:4 not valid YAML: a double quote opens and does not close"},
		{"an open bracket", "---\na: [x\n---\n", "2:4 not valid YAML: sequence end token ']' not found"},
		{"a colon in a value over two lines", "---\na: x: y\n  z\n---\n", "2:4 the value holds a colon, is not quoted and goes on in the next lines"},
		{"a colon below the top", "---\na:\n  b: x: y\n---\n", "3:6 not valid YAML: a second colon in an unquoted value"},
		{"too deep", "---\na: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n---\n", "2:36 the YAML is nested too deeply"},
		{"far too deep", "---\na: " + strings.Repeat("[", 30_000) + "\n---\n", "2:1 the YAML is nested too deeply"},
		{"a bomb", "---\na: &a [x,x,x,x,x,x,x,x,x,x]\n" + bomb(8) + "---\n", "2:26 more than 10000 values"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := frontmatter.Parse([]byte(tc.file))
			if len(problems) == 0 {
				t.Fatal("read without a problem")
			}
			p := problems[0]
			if got := fmt.Sprintf("%d:%d %s", p.Line, p.Col, p.Message); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if p.Hint == "" {
				t.Error("no hint what to do")
			}
		})
	}
}

// bomb is a chain of lists, each ten times the one before.
func bomb(n int) string {
	var b strings.Builder
	for i := range n {
		from := string(rune('a' + i))
		to := string(rune('b' + i))
		fmt.Fprintf(&b, "%s: &%s [%s*%s]\n", to, to, strings.Repeat("*"+from+",", 9), from)
	}
	return b.String()
}

func TestRecovery(t *testing.T) {
	for _, tc := range []struct {
		name, line, want string
	}{
		{"a colon", "description: Use when: always", "Use when: always"},
		{"several, quotes and a hash", `description: Context: it's "x": see #3`, `Context: it's "x": see #3`},
		{"escapes stay as written", `description: Examples:\n<example>Context: x</example>`, `Examples:\n<example>Context: x</example>`},
		{"at the end", "description: Use when:", "Use when:"},
		{"a dash", "description: -x: y", "-x: y"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc, problems := frontmatter.Parse([]byte("---\nname: a\n" + tc.line + " \ntools: Read\n---\n"))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			f, _ := doc.Field("description")
			if f.Value.Text != tc.want {
				t.Errorf("got %q, want %q", f.Value.Text, tc.want)
			}
			if len(doc.Fields) != 3 || len(doc.Warnings) != 1 || doc.Warnings[0].Line != 3 || doc.Warnings[0].Col != 14 {
				t.Errorf("%+v", doc)
			}
		})
	}
}

func TestRecoveryLeavesCommentsAlone(t *testing.T) {
	doc, problems := frontmatter.Parse([]byte("---\ntools: Read # only: reading\ndescription: a: b\n---\n"))
	if tools, _ := doc.Field("tools"); len(problems) > 0 || tools.Value.Text != "Read" || len(doc.Warnings) != 1 {
		t.Errorf("%+v %+v", doc, problems)
	}
}

func TestBlankLinesBefore(t *testing.T) {
	doc, problems := frontmatter.Parse([]byte("\n \n---\na: x\n---\nbody"))
	if len(problems) > 0 || len(doc.Warnings) != 1 || doc.Fields[0].Line != 4 || doc.BodyLine != 6 {
		t.Errorf("%+v %+v", doc, problems)
	}
}

// Every file that is made of a frontmatter and a body gives that body back.
func TestBodyIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-z]{1,8}( [a-z:]{1,8}){0,4}`).Draw(t, "value")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		body := strings.ReplaceAll(rapid.String().Draw(t, "body"), "\x00", "")
		doc, problems := frontmatter.Parse([]byte("---" + end + "a: " + value + end + "---" + end + body))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if doc.Body != body || doc.Fields[0].Value.Text != value {
			t.Fatalf("body %q, value %q", doc.Body, doc.Fields[0].Value.Text)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: b: c\n---\nbody"))
	f.Add([]byte("---\na: &x [1, {b: *x}]\nc: |\n  d\n---\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, problems := frontmatter.Parse(data)
		if len(problems) == 0 && !strings.HasSuffix(string(data), doc.Body) {
			t.Fatalf("the body %q is not the file's end", doc.Body)
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
		for _, p := range append(problems, doc.Warnings...) {
			if p.Line < 1 || p.Col < 1 || p.Line > lines || p.Message == "" || p.Hint == "" {
				t.Fatalf("no good problem: %+v", p)
			}
		}
		seen := map[string]bool{}
		for _, field := range doc.Fields {
			if seen[field.Key] {
				t.Fatalf("%q twice", field.Key)
			}
			seen[field.Key] = true
			field.Value.Any()
		}
	})
}

// The positions of real files' keys are where the keys stand.
func TestPositionsInCorpus(t *testing.T) {
	dir := os.Getenv("GOCLAW_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no corpus: set GOCLAW_CORPUS to its folder")
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		doc, _ := frontmatter.Parse(data)
		lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
		for _, f := range doc.Fields {
			if at := string([]rune(lines[f.Line-1])[f.Col-1:]); !strings.HasPrefix(at, f.Key) {
				t.Errorf("%s:%d:%d: no key %q there", path, f.Line, f.Col, f.Key)
			}
			v, line := f.Value, []rune(lines[f.Value.Line-1])
			if word := strings.Fields(v.Text + " "); v.Kind == frontmatter.String && len(word) > 0 && strings.HasPrefix(string(line), f.Key+": "+word[0]) && v.Col != len([]rune(f.Key))+3 {
				t.Errorf("%s:%d:%d: no value of %q there", path, v.Line, v.Col, f.Key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files", files)
}
