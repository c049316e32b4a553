// Command flaggen generates Go source from the flags of the Megatron-LM releases.
// It reads flags.jsonl, which holds a line for each release and a line for each
// definition of a flag with its range of releases. It writes flags_gen.go of the
// package megatron: one row for each definition, and one typed field for each
// value that the program's sources use, so that the compiler checks that use.
//
// With -add it first adds a release to flags.jsonl, from the JSON that dump.py
// prints from that release's own parser.
package main

import (
	"encoding/json"
	"flag"
	"go/format"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	log.SetFlags(0)
	path := flag.String("flags", "knowledge/megatron/flaggen/flags.jsonl", "the flags of every release")
	out := flag.String("o", "knowledge/megatron/flags_gen.go", "file to write")
	sources := flag.String("sources", ".", "the folder of the program's sources")
	var rel release
	add := flag.String("add", "", "a file with the JSON that dump.py printed for a release; adds or replaces the release")
	flag.StringVar(&rel.Name, "release", "", "with -add: the release, such as 0.17.1 or main")
	flag.StringVar(&rel.Const, "const", "", "with -add: the name of its Go constant, such as V017")
	flag.StringVar(&rel.Tag, "tag", "", "with -add: its git tag")
	flag.StringVar(&rel.Commit, "commit", "", "with -add: its commit")
	flag.StringVar(&rel.Date, "date", "", "with -add: the commit's date")
	flag.Parse()
	if flag.NArg() != 0 || *add != "" && (rel.Name == "" || rel.Const == "" || rel.Commit == "") {
		log.Fatal("usage: flaggen [-add dump.json -release 0.17.1 -const V017 -tag core_v0.17.1 -commit SHA -date 2026-05-25]")
	}
	if err := run(*path, *out, *sources, *add, rel); err != nil {
		log.Fatal(err)
	}
}

func run(path, out, sources, add string, rel release) error {
	h, err := readHistory(path)
	if err != nil {
		return err
	}
	if add != "" {
		raw, err := os.ReadFile(add)
		if err != nil {
			return err
		}
		var table struct{ Args []row }
		if err := json.Unmarshal(raw, &table); err != nil {
			return err
		}
		for i, r := range table.Args {
			table.Args[i] = normal(r)
		}
		h = h.add(rel, table.Args)
		if err := h.write(path); err != nil {
			return err
		}
	}
	used, err := namesIn(sources)
	if err != nil {
		return err
	}
	src, err := generate(h, func(name string) bool { return used[name] })
	if err != nil {
		return err
	}
	formatted, err := format.Source(src)
	if err != nil {
		return err
	}
	return os.WriteFile(out, formatted, 0o644)
}

// name matches what may be a field of Options, or is a flag.
var name = regexp.MustCompile(`\.([A-Z]\w*)|"(--[a-z0-9][\w-]*)"`)

// namesIn returns the fields and flags that the Go files of a folder name, apart from
// generated ones.
func namesIn(dir string) (map[string]bool, error) {
	used := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_gen.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(text, -1) {
			used[string(m[1])+string(m[2])] = true
		}
		return err
	})
	return used, err
}
