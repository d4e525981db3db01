package main

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// generate returns the two outputs of a format, by path: the JSON Schema and the reference page. There are two kinds of
// formats. If headType is empty, a file is one table. Otherwise a file is a list of lines: the type headType has the keys of
// every line, and each field of the root is one type of line.
func (f *fileFormat) generate(headType string, outputs [2]string) (map[string][]byte, error) {
	doc := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", schemaLocation + filepath.Base(outputs[0])}, {"title", f.root}}
	var page string
	if headType == "" {
		doc, page = append(doc, f.tableSchema(f.root)...), f.referencePage()
	} else {
		doc, page = append(doc, keyAndValue{"oneOf", f.lineSchemas(headType)}), f.referencePageOfLineFormat(headType)
	}
	var defs object
	for _, name := range f.order[1:] {
		defs = append(defs, keyAndValue{name, f.tableSchema(name)})
	}
	schema, err := plainjson.Indented(append(doc, keyAndValue{"$defs", defs}))
	return map[string][]byte{outputs[0]: schema, outputs[1]: []byte(page)}, err
}

func (f *fileFormat) lineNamesAndTypes() (lineNames, goTypes []string) {
	for _, fd := range f.fieldsOfStructType(f.root) {
		if star, ok := fd.typ.(*ast.StarExpr); ok {
			if id, ok := star.X.(*ast.Ident); ok {
				lineNames, goTypes = append(lineNames, fd.key), append(goTypes, id.Name)
			}
		}
	}
	return lineNames, goTypes
}

// lineSchemas returns the JSON Schema of each type of line. Unknown types are refused. Unknown keys are allowed, because
// later versions may add keys.
func (f *fileFormat) lineSchemas(headType string) (schemas []object) {
	names, types := f.lineNamesAndTypes()
	for i, name := range names {
		properties, required := f.propertySchemas(append(f.fieldsOfStructType(headType), f.fieldsOfStructType(types[i])...))
		for k := range properties {
			if properties[k].key == "type" {
				properties[k].value = object{{"const", name}}
			}
		}
		schemas = append(schemas, object{{"title", name}, {"description", f.lineDocSentence(name, types[i])}, {"type", "object"}, {"properties", properties}, {"required", required}})
	}
	return schemas
}

func (f *fileFormat) referencePageOfLineFormat(commonFieldsType string) string {
	var b strings.Builder
	b.WriteString(generatedNotice + f.guide)
	f.writeKeyTableSection(&b, "Every line", commonFieldsType, f.descriptionOfTableType(commonFieldsType))
	names, types := f.lineNamesAndTypes()
	described := append([]string{commonFieldsType, f.root}, types...)
	for i, name := range names {
		f.writeKeyTableSection(&b, name, types[i], f.lineDocSentence(name, types[i]))
	}
	for _, name := range f.order {
		if !slices.Contains(described, name) {
			f.writeKeyTableSection(&b, name, name, f.descriptionOfTableType(name))
		}
	}
	return b.String()
}

// lineDocSentence returns the doc comment of a type of line as a sentence about lines: "Prompt is a prompt" becomes
// "A `prompt` line records a prompt".
func (f *fileFormat) lineDocSentence(line, goType string) string {
	doc := strings.Join(strings.Fields(f.docs[goType]), " ")
	article := "A"
	if strings.Contains("aeiou", line[:1]) || strings.HasPrefix(line, "mcp") {
		article = "An"
	}
	rest := strings.TrimPrefix(doc, goType)
	if object, ok := strings.CutPrefix(rest, " is "); ok {
		rest = " records " + object
	}
	return article + " `" + line + "` line" + rest
}
