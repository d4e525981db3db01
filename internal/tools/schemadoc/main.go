// Command schemadoc writes the JSON Schema and the reference page of a file format from the Go types that files are
// bound to (see internal/base/diag) and their doc comments. The reference page begins with the package's guide.md.
//
// The output depends only on the source, so that a test can check whether it is up to date.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	dir := flag.String("dir", ".", "directory of the Go package")
	root := flag.String("type", "", "type of a whole file")
	schema := flag.String("json", "", "JSON Schema to write")
	page := flag.String("md", "", "reference page to write")
	head := flag.String("head", "", "Go type of the fields common to all lines; -type then lists the types of the individual lines")
	list := flag.String("list", "", "file whose lines are a list at the end of the guide")
	flag.Parse()
	if err := run(*dir, *root, *head, *list, [2]string{*schema, *page}); err != nil {
		panic(err)
	}
}

func run(dir, rootType, headType, listFile string, outputs [2]string) error {
	f, err := parsePackage(dir, rootType)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dir, err)
	}
	if listFile != "" {
		list, err := os.ReadFile(listFile)
		if err != nil {
			return err
		}
		f.guide += strings.ReplaceAll("\n"+strings.TrimSpace(string(list)), "\n", "\n- ") + "\n"
	}
	files, err := f.generate(headType, outputs)
	if err != nil {
		return err
	}
	for path, data := range files {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
