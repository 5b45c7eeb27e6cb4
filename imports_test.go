package holdfast_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// policy is who may import whom, besides the standard library. Imports point one
// way: a package may use those before it in this order, as far as it needs to.
// Names without a dot are packages of this module; "." is its root.
var policy = map[string][]string{
	".":           {},
	"permit":      {},
	"gradient":    {},
	"limiter":     {"permit", "gradient"},
	"hedgedlimit": {"permit", "gradient", "limiter"},
	"httpmw":      {"permit", "gradient", "limiter", "hedgedlimit"},
	"grpcmw": {
		"permit", "gradient", "limiter", "hedgedlimit",
		"google.golang.org/grpc", "google.golang.org/grpc/codes", "google.golang.org/grpc/metadata",
		"google.golang.org/grpc/peer", "google.golang.org/grpc/stats", "google.golang.org/grpc/status",
		"google.golang.org/protobuf/proto", "google.golang.org/protobuf/reflect/protoreflect",
		"google.golang.org/protobuf/types/descriptorpb",
	},
	"promlimit": {"permit", "limiter", "hedgedlimit", "github.com/prometheus/client_golang/prometheus"},
	"proptest":  {"permit", "gradient", "limiter", "hedgedlimit", "pgregory.net/rapid"},
	// A program that plants faults and runs the tests; it needs nothing.
	"proptest/mutants": {},
}

// testPolicy is what test files may import besides.
var testPolicy = []string{
	"permit", "gradient", "limiter", "hedgedlimit", "httpmw", "grpcmw", "promlimit", "proptest",
	"pgregory.net/rapid", "golang.org/x/sync/semaphore", "github.com/prometheus/client_golang/prometheus",
}

// The core takes the standard library alone, and imports point one way.
func TestImportPolicy(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bench" || entry.Name() == "out"):
			return filepath.SkipDir // bench is a module of its own and may import everything
		case entry.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(file))
		allowed, ok := policy[pkg]
		if !ok {
			t.Errorf("%s: package %s has no import policy; add it to the table", file, pkg)
			return nil
		}
		seen[pkg] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			own, inModule := strings.CutPrefix(name, module+"/")
			if inModule {
				name = own
			}
			standard := !inModule && !strings.Contains(strings.Split(name, "/")[0], ".")
			isTest := strings.HasSuffix(file, "_test.go")
			switch {
			case standard, slices.Contains(allowed, name):
			case isTest && pkg == "grpcmw" && strings.HasPrefix(name, "google.golang.org/"):
			case isTest && (slices.Contains(testPolicy, name) || strings.HasPrefix(name, "internal/")):
			default:
				t.Errorf("%s: package %s may not import %s", file, pkg, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range policy {
		if !seen[pkg] {
			t.Errorf("the policy names package %s, which does not exist", pkg)
		}
	}
}
