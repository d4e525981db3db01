package fill

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
)

// FileCompiler checks one scenario file: it compiles the expressions, reads the files that values refer to, and reports
// problems with their positions.
type FileCompiler struct {
	Library     *CompiledExpressions
	Source      *ScenarioFile
	ReadFile    func(path string) ([]byte, error) // reads a file that a value refers to
	Diagnostics *diag.List                        // the problems
	Path        diag.Path                         // path of the current value
	Groups      string                            // names of the capture groups that expressions at Path can use, separated by spaces
}

// WithPathExtendedBy calls run while Path is extended by keyOrIndex.
func (c *FileCompiler) WithPathExtendedBy(keyOrIndex any, run func()) {
	c.Path = append(c.Path, keyOrIndex)
	run()
	c.Path = c.Path[:len(c.Path)-1]
}

// Errorf adds an error about the value at Path to Diagnostics.
func (c *FileCompiler) Errorf(format string, args ...any) { c.ErrorWithHintf("", format, args...) }

// ErrorWithHintf is like Errorf, with a hint.
func (c *FileCompiler) ErrorWithHintf(hint, format string, args ...any) {
	d := c.Source.Index.DiagnosticAt(c.Path, fmt.Sprintf(format, args...))
	d.Hint = hint
	*c.Diagnostics = append(*c.Diagnostics, d)
}

// CompileCondition compiles the condition src, the value of the key `when` in the TOML table that Path leads to.
func (c *FileCompiler) CompileCondition(src string) {
	if src == "" {
		return
	}
	key := expressionKey{src, c.Groups}
	if c.Library.conditions[key] != nil {
		return
	}
	p, err := eval.CompileBool(src, c.Library.expressionCompilerForCaptureGroups(c.Groups).Env)
	if err != nil {
		c.WithPathExtendedBy("when", func() { c.reportExpressionErrors("in the condition: ", err) })
		return
	}
	c.Library.conditions[key] = p
	c.Library.recordUsedVariables(src)
}

// CompileTemplate compiles the template src, which is the string at Path.
func (c *FileCompiler) CompileTemplate(src string) {
	if !c.Source.Templates || !eval.HasTemplate(src) {
		return
	}
	key := expressionKey{src, c.Groups}
	if c.Library.templates[key] != nil {
		return
	}
	t, err := c.Library.expressionCompilerForCaptureGroups(c.Groups).CompileTemplate(src)
	if err != nil {
		c.reportExpressionErrors("in the template: ", err)
		return
	}
	c.Library.templates[key] = t
	c.Library.recordUsedVariables(src)
}

func (c *FileCompiler) reportExpressionErrors(messagePrefix string, err error) {
	for _, e := range eval.CompileErrorsIn(err) {
		d := c.Source.Index.DiagnosticAtText(c.Path, e.Offset, messagePrefix+e.Message)
		d.Hint = cmp.Or(e.Hint, diag.NameHint(e.Name, e.Known))
		*c.Diagnostics = append(*c.Diagnostics, d)
	}
}

// CompileJSONValue compiles the templates in a JSON value and reads the files that it refers to.
func (c *FileCompiler) CompileJSONValue(raw json.RawMessage) {
	if !mayContainTemplateOrFile(raw, c.Source.Templates) {
		return
	}
	v, _ := diag.IndexJSON("", wrapInObjectUnderEmptyKey(raw)).Root().Field("")
	c.compileTemplatesAndReadFiles(v)
}

func (c *FileCompiler) compileTemplatesAndReadFiles(v diag.Value) {
	switch v.Kind {
	case diag.KindString:
		c.CompileTemplate(v.Text)
	case diag.KindArray:
		for i, item := range v.Items() {
			c.WithPathExtendedBy(i, func() { c.compileTemplatesAndReadFiles(item) })
		}
	case diag.KindTable:
		if name, ok := referencedFileName(v); ok {
			c.WithPathExtendedBy("$file", func() {
				if len(v.Fields()) > 1 {
					c.Errorf("a table with `$file` cannot have other keys")
				}
				c.loadFileAsJSON(name)
			})
			return
		}
		for _, f := range v.Fields() {
			c.WithPathExtendedBy(f.Key, func() { c.compileTemplatesAndReadFiles(f.Value) })
		}
	default:
	}
}

// LoadTextFile reads a text file into the library. Path must be the position of the file's name in the scenario.
func (c *FileCompiler) LoadTextFile(name string) {
	path := diag.JoinUnlessAbsolute(c.Source.Dir, name)
	content, err := c.ReadFile(path)
	switch {
	case err != nil:
		c.Errorf("failed to resolve file reference %q: %s", name, diag.FileErrorTextWithoutPath(err))
	case !utf8.Valid(content):
		c.Errorf("the file %q is not UTF-8 text", name)
	default:
		c.Library.texts[path] = string(content)
	}
}

// loadFileAsJSON reads a file into the library as JSON. Files without the extension .json become JSON strings.
func (c *FileCompiler) loadFileAsJSON(name string) {
	path := diag.JoinUnlessAbsolute(c.Source.Dir, name)
	if c.Library.files[path] != nil {
		return
	}
	content, err := c.ReadFile(path)
	if err != nil {
		c.Errorf("failed to resolve file reference %q: %s", name, diag.FileErrorTextWithoutPath(err))
		return
	}
	if strings.EqualFold(filepath.Ext(name), ".json") {
		if d := diag.IndexJSON(name, wrapInObjectUnderEmptyKey(content)).FirstPossibleProblem(); d != nil || !json.Valid(content) {
			c.Errorf("the file %q is not valid JSON", name)
			return
		}
		c.Library.files[path] = content
		return
	}
	if c.Library.files[path], err = eval.AppendJSON(nil, string(content)); err != nil {
		c.Errorf("the content of the file %q cannot be used in an expression: %v", name, err)
	}
}
