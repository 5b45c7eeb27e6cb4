package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// jitterSource is what every statement of a package begins with under -jitter: now and
// then the goroutine steps aside, so that others get between any two steps, and not only
// where a processor happens to be taken away.
const jitterSource = `

import (
	"math/rand/v2"
	"runtime"
)

func jitter() {
	if rand.IntN(4) == 0 {
		runtime.Gosched()
	}
}
`

// jitter puts a call of jitter before every statement of the functions in the Go files
// of dir, tests left out, and returns what puts the files right again.
func jitter(dir string) (restore func() error, err error) {
	sound := map[string][]byte{}
	added := filepath.Join(dir, "jitter_.go")
	restore = func() error {
		for name, text := range sound {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return err
			}
		}
		return os.RemoveAll(added)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return restore, err
	}
	var pkg string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return restore, err
		}
		set := token.NewFileSet()
		// Without comments, which would come to stand anywhere.
		file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			return restore, err
		}
		pkg = file.Name.Name
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				if len(n.List) == 0 || !isClause(n.List[0]) {
					n.List = jittered(n.List)
				}
			case *ast.CaseClause:
				n.Body = jittered(n.Body)
			case *ast.CommClause:
				n.Body = jittered(n.Body)
			}
			return true
		})
		var out bytes.Buffer
		if err := format.Node(&out, set, file); err != nil {
			return restore, err
		}
		sound[path] = text
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			return restore, err
		}
	}
	return restore, os.WriteFile(added, []byte("package "+pkg+jitterSource), 0o644)
}

func isClause(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

func jittered(list []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for _, s := range list {
		out = append(out, &ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent("jitter")}}, s)
	}
	return out
}
