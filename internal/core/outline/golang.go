package outline

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
)

// golang lists what go/parser finds, as far as it gets.
func golang(out *list, name, text string) {
	set := gotoken.NewFileSet()
	file, _ := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if file == nil {
		return
	}
	g := goFile{out: out, set: set, text: text}
	if file.Name != nil && file.Name.Name != "" && file.Name.Name != "_" {
		g.add(0, file.Package, file.Name.End(), "")
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			end := d.End()
			if d.Body != nil {
				end = d.Body.Lbrace
			}
			g.add(0, d.Pos(), end, "")
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				g.spec(d.Tok, spec)
			}
		}
	}
}

type goFile struct {
	out  *list
	set  *gotoken.FileSet
	text string
}

func (g goFile) add(depth int, from, to gotoken.Pos, prefix string) {
	start, end := g.offset(from), g.offset(to)
	if start < end {
		g.out.add(g.set.PositionFor(from, false).Line, depth, prefix+g.text[start:end])
	}
}

func (g goFile) offset(pos gotoken.Pos) int {
	if !pos.IsValid() {
		return 0
	}
	return min(max(g.set.PositionFor(pos, false).Offset, 0), len(g.text))
}

func (g goFile) spec(tok gotoken.Token, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		switch t := s.Type.(type) {
		case *ast.StructType:
			g.add(0, s.Pos(), t.Fields.Pos(), "type ")
			g.fields(t.Fields)
		case *ast.InterfaceType:
			g.add(0, s.Pos(), t.Methods.Pos(), "type ")
			g.fields(t.Methods)
		default:
			g.add(0, s.Pos(), s.End(), "type ")
		}
	case *ast.ValueSpec:
		end := s.Names[len(s.Names)-1].End()
		if s.Type != nil {
			end = s.Type.End()
		}
		g.add(0, s.Pos(), end, tok.String()+" ")
	}
}

func (g goFile) fields(fields *ast.FieldList) {
	for _, f := range fields.List {
		if f.Type != nil {
			g.add(1, f.Pos(), f.Type.End(), "")
		}
	}
}
