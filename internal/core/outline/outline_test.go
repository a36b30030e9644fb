package outline_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/core/outline"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d samples, error %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := outline.File(name, string(text))
			if !ok {
				t.Fatal("no outline")
			}
			golden := strings.TrimSuffix(file, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNoOutline(t *testing.T) {
	for name, text := range map[string]string{
		"unknown kind": "a.json", "no kind": "Makefile", "nothing declared": "b.py", "too long": "c.py", "not UTF-8": "d.py",
	} {
		content := map[string]string{"a.json": `{"a": 1}`, "b.py": "print(1)\n", "c.py": "def f(): pass\n" + strings.Repeat(" ", outline.MaxText), "d.py": "def f\xff(): pass\n"}[text]
		if got, ok := outline.File(text, content); ok || got != "" {
			t.Errorf("%s: outline %q", name, got)
		}
	}
}

var extensions = []string{".go", ".ts", ".js", ".py", ".java", ".cs", ".kt", ".swift", ".scala", ".rs", ".c", ".cpp", ".php", ".dart", ".rb", ".lua", ".sh", ".md"}

// check holds for the outline of any text.
func check(t *testing.T, ext, text string) {
	t.Helper()
	got, ok := outline.File("x"+ext, text)
	again, _ := outline.File("x"+ext, text)
	if got != again {
		t.Fatalf("%s: two outlines of one text", ext)
	}
	if !ok {
		if got != "" {
			t.Fatalf("%s: no outline, and text %q", ext, got)
		}
		return
	}
	if !utf8.ValidString(got) {
		t.Fatalf("%s: the outline is not UTF-8", ext)
	}
	last := strings.Count(text, "\n") + 1
	for line := range strings.Lines(got) {
		number, signature, numbered := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if n, err := strconv.Atoi(number); numbered && (err != nil || n < 1 || n > last) {
			t.Fatalf("%s: line %q of a text of %d lines", ext, line, last)
		}
		if len(strings.TrimLeft(signature, " ")) > outline.MaxSignature {
			t.Fatalf("%s: %d bytes in one line", ext, len(signature))
		}
	}
}

// Inputs that make backtracking or nesting readers slow.
func TestHostile(t *testing.T) {
	long := func(s string) string { return strings.Repeat(s, (1<<15)/len(s)) }
	texts := map[string]string{
		"open round": long("("), "open braces": long("{"), "generics": long("a<b>("), "templates": long("`${"), "comments": long("/*"),
		"quotes": long(`"`), "triple": long(`"""`), "backslashes": `"` + long(`\`), "words": long("a"), "blanks": "x +" + long("\n"),
		"annotations": long("@a\n"), "attributes": long("#[a]\n"), "labels": long("<<A\n"), "raw": long(`R"x(`), "classes": long("class A {\n"),
		"defs": long("def f():\n "), "regexes": long("=/["), "quoted blocks": long(">"), "quoted lines": long("> ") + "\n" + long("a\n"),
		"lists": long("- "), "brackets": long("["), "emphasis": long("*a "), "headings": long("# a\n"), "php": "<?php " + long(`"$a{`),
		"types": "package a\ntype A " + long("[]"), "closers": long("}"), "equals": long("a={}"), "operators": long("a = b +\n"),
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			for _, ext := range extensions {
				check(t, ext, text)
			}
		})
	}
}

func FuzzOutline(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, ext := range extensions {
			if strings.HasSuffix(strings.TrimSuffix(file, ".txt"), ext) {
				f.Add(i, string(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, ext int, text string) {
		if ext < 0 || len(text) > 1<<16 {
			return
		}
		check(t, extensions[ext%len(extensions)], text)
	})
}

func BenchmarkOutline(b *testing.B) {
	for _, name := range []string{"shop.ts", "app.py", "shop.go", "plan.md"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			b.Fatal(err)
		}
		long := strings.Repeat(string(text), 100<<10/len(text))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(long)))
			for b.Loop() {
				outline.File(name, long)
			}
		})
	}
}
