package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

type fileFormat struct {
	guide string // Markdown, the beginning of the reference page
	root  string
	types map[string]*ast.TypeSpec
	docs  map[string]string
	order []string // the struct types that root refers to, directly or indirectly; root first
}

type field struct {
	key, doc string
	typ      ast.Expr
	tag      reflect.StructTag
	required bool
}

// parsePackage reads the file guide.md and the types of the package in dir.
func parsePackage(dir, root string) (*fileFormat, error) {
	guide, err := os.ReadFile(filepath.Join(dir, "guide.md"))
	if err != nil {
		return nil, err
	}
	f := &fileFormat{guide: string(guide), root: root, types: map[string]*ast.TypeSpec{}, docs: map[string]string{}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		f.collectTypes(file)
	}
	if f.types[root] == nil {
		return nil, fmt.Errorf("unknown type %s", root)
	}
	f.collectTables(root)
	return f, nil
}

func (f *fileFormat) collectTypes(file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := cmp.Or(t.Doc, gen.Doc)
			f.types[t.Name.Name] = t
			f.docs[t.Name.Name] = doc.Text()
		}
	}
}

// collectTables lists a type and all tables below it in f.order, depth first.
func (f *fileFormat) collectTables(name string) {
	if slices.Contains(f.order, name) {
		return
	}
	fields := f.fieldsOfStructType(name)
	if len(fields) == 0 {
		return
	}
	f.order = append(f.order, name)
	for _, fd := range fields {
		for _, part := range alternativesInSchemaTag(fd) {
			f.collectTables(part)
		}
		ast.Inspect(fd.typ, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && f.types[id.Name] != nil {
				f.collectTables(id.Name)
			}
			return true
		})
	}
}

// fieldsOfStructType returns the keys of a struct type; nil means that the type is not a table. Keys of embedded structs are
// included, but never as required keys.
func (f *fileFormat) fieldsOfStructType(structType string) []field {
	spec := f.types[structType]
	if spec == nil {
		return nil
	}
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var fields []field
	for _, fl := range st.Fields.List {
		if len(fl.Names) == 0 {
			if id, ok := fl.Type.(*ast.Ident); ok {
				for _, inner := range f.fieldsOfStructType(id.Name) {
					inner.required = false
					fields = append(fields, inner)
				}
			}
			continue
		}
		if fl.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(fl.Tag.Value, "`"))
		key, opts := keyOf(tag)
		if key == "" || key == "-" {
			continue
		}
		doc := cmp.Or(fl.Doc.Text(), fl.Comment.Text())
		fields = append(fields, field{key: key, doc: rewriteBoolDescription(fl.Type, rewriteDocComment(doc, fl.Names[0].Name, key)), typ: fl.Type, tag: tag, required: opts == "required"})
	}
	return fields
}

// keyOf returns the key of a field and its options. They are in the TOML tag or, without a TOML tag, in the JSON tag. A
// JSON field without omitempty is required.
func keyOf(tag reflect.StructTag) (key, opts string) {
	key, opts, _ = strings.Cut(tag.Get("toml"), ",")
	in, written := tag.Lookup("json")
	if key != "" || !written {
		return key, opts
	}
	if key, opts, _ = strings.Cut(in, ","); opts == "" {
		opts = "required"
	}
	return key, opts
}

// rewriteDocComment rewrites a doc comment for a table that shows the key in another column. The text then need not
// begin with the Go name: "Name is the label" becomes "The label", "Name of it" becomes "The name of it".
func rewriteDocComment(doc, name, key string) string {
	doc = strings.Join(strings.Fields(doc), " ")
	rest, ok := strings.CutPrefix(doc, name)
	if !ok || rest != "" && (rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z') {
		return doc
	}
	verb, object, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	switch {
	case !strings.HasPrefix(rest, " "):
	case verb == "is" || verb == "are":
		return upperFirst(object)
	case slices.Contains([]string{"of", "for", "as", "that", "to", "with", "in"}, verb):
		return "The " + strings.ReplaceAll(key, "_", " ") + rest
	case strings.HasSuffix(verb, "s"):
		return upperFirst(verb) + " " + object
	}
	return "`" + key + "`" + rest
}

// rewriteBoolDescription rewrites the description of a boolean key: "Says that it ran" becomes "True if it ran".
func rewriteBoolDescription(fieldType ast.Expr, description string) string {
	if star, ok := fieldType.(*ast.StarExpr); ok {
		fieldType = star.X
	}
	if id, ok := fieldType.(*ast.Ident); ok && id.Name == "bool" {
		for _, formula := range []string{"Says that ", "Says whether ", "Reports that ", "Reports whether "} {
			if rest, ok := strings.CutPrefix(description, formula); ok {
				return "True if " + rest
			}
		}
	}
	return description
}

// descriptionOfTableType returns the doc comment of a type without its name, because the name is the heading of its section.
func (f *fileFormat) descriptionOfTableType(tableType string) string {
	return rewriteDocComment(f.docs[tableType], tableType, tableType)
}

func upperFirst(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }

func alternativesInSchemaTag(fd field) []string {
	tag := fd.tag.Get("schema")
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}
