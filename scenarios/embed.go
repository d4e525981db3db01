package scenarios

import (
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
)

//go:embed library/*.toml
var libraryFiles embed.FS

// Library lists the names of the embedded scenarios, sorted.
func Library() []string {
	entries, err := libraryFiles.ReadDir("library")
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".toml")
	}
	return names
}

// LoadLibrary loads an embedded scenario. The error for an unknown name is a
// [diag.List] that names the nearest one.
func LoadLibrary(name string) (*Scenario, error) {
	file := path.Join("library", name+".toml")
	src, err := libraryFiles.ReadFile(file)
	if err != nil {
		names := Library()
		hint := diag.MeantHint(name, names)
		if hint == "" {
			hint = "the library has " + strings.Join(names, ", ")
		}
		return nil, diag.List{{Pos: diag.Position{File: name}, Message: fmt.Sprintf("there is no scenario file %q and none of this name in the library", name), Hint: hint}}
	}
	return Parse(file, src, LoadOptions{ReadFile: libraryFiles.ReadFile})
}

// Open loads the scenario that a command line names: a file, or when there is none
// and the name has no slash, one of the library.
func Open(name string) (*Scenario, error) {
	if _, err := os.Stat(name); err == nil || strings.ContainsRune(name, filepath.Separator) {
		return Load(name, LoadOptions{})
	}
	return LoadLibrary(name)
}

// Greeting is the scenario of a run without one: every prompt is answered by a
// text that says so.
func Greeting() *Scenario {
	plain := false
	return &Scenario{Templates: &plain, DefaultResponse: &Response{Text: greeting}}
}

const greeting = "Hello! No scenario is loaded, so there is nothing else to say. " +
	"Give one with --scenario FILE, with the variable CLAUDELESS_SCENARIO or as claudeless.toml in the working directory; " +
	"--scenario quickstart is one to try."
