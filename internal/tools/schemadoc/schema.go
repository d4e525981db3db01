package main

import (
	"go/ast"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// object is a JSON object whose keys keep their order.
type object []objectMember

type objectMember struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var all plainjson.Object
	for _, m := range o {
		value, err := plainjson.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		all = append(all, plainjson.Member{Key: m.key, Value: value})
	}
	return all.Raw(), nil
}

// schemaLocation is the address of the committed schemas. Editors and SchemaStore identify a schema by this address.
const schemaLocation = "https://raw.githubusercontent.com/claudeless/claudeless/main/docs/schema/"

func (f *fileFormat) tableSchema(name string) object {
	properties, required := f.propertySchemas(f.fieldsOfStructType(name))
	o := object{{"description", f.descriptionOfTableType(name)}, {"type", "object"}, {"properties", properties}}
	if required != nil {
		o = append(o, objectMember{"required", required})
	}
	return append(o, objectMember{"additionalProperties", false})
}

func (f *fileFormat) propertySchemas(fields []field) (properties object, required []string) {
	for _, fd := range fields {
		properties = append(properties, objectMember{fd.key, append(object{{"description", fd.doc}}, f.propertySchema(fd)...)})
		if fd.required {
			required = append(required, fd.key)
		}
	}
	return properties, required
}

func (f *fileFormat) propertySchema(fd field) object {
	var o object
	if forms := alternativesInSchemaTag(fd); forms != nil {
		anyOf := make([]object, len(forms))
		for i, form := range forms {
			anyOf[i] = f.schemaOfAlternative(form)
		}
		o = object{{"anyOf", anyOf}}
	} else {
		o = f.schemaOfGoType(fd.typ)
	}
	if enum := fd.tag.Get("enum"); enum != "" {
		o = append(o, objectMember{"enum", strings.Split(enum, ",")})
	}
	if fd.tag.Get("empty") == "no" {
		o = append(o, objectMember{"minLength", 1})
	}
	for _, m := range []objectMember{{"minimum", fd.tag.Get("min")}, {"maximum", fd.tag.Get("max")}, {"default", fd.tag.Get("default")}} {
		if m.value != "" {
			o = append(o, objectMember{m.key, jsonLiteral(m.value.(string))})
		}
	}
	return o
}

func jsonLiteral(s string) any {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n
	}
	if b, err := strconv.ParseBool(s); err == nil {
		return b
	}
	return s
}

func (f *fileFormat) schemaOfAlternative(alternative string) object {
	switch {
	case alternative == "string" || alternative == "integer" || alternative == "number" || alternative == "boolean" || alternative == "object" || alternative == "array":
		return object{{"type", alternative}}
	case f.types[alternative] != nil:
		return f.namedTypeSchema(alternative)
	}
	return object{{"enum", strings.Split(alternative, ",")}}
}

func (f *fileFormat) schemaOfGoType(t ast.Expr) object {
	switch t := t.(type) {
	case *ast.StarExpr:
		return f.schemaOfGoType(t.X)
	case *ast.ArrayType:
		return object{{"type", "array"}, {"items", f.schemaOfGoType(t.Elt)}}
	case *ast.MapType:
		return object{{"type", "object"}, {"additionalProperties", f.schemaOfGoType(t.Value)}}
	case *ast.Ident:
		switch kind := jsonTypeOfGoType(t.Name); {
		case kind != "":
			return object{{"type", kind}}
		case f.types[t.Name] != nil:
			return f.namedTypeSchema(t.Name)
		}
	}
	return object{}
}

// namedTypeSchema returns the schema of a type of the package, or a reference to it for a struct with keys.
func (f *fileFormat) namedTypeSchema(name string) object {
	if len(f.fieldsOfStructType(name)) > 0 {
		if name == f.root {
			return object{{"$ref", "#"}}
		}
		return object{{"$ref", "#/$defs/" + name}}
	}
	if _, isStruct := f.types[name].Type.(*ast.StructType); isStruct {
		return object{}
	}
	return f.schemaOfGoType(f.types[name].Type)
}

func jsonTypeOfGoType(goType string) string {
	switch goType {
	case "string":
		return "string"
	case "bool":
		return "boolean"
	case "float32", "float64":
		return "number"
	case "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64":
		return "integer"
	}
	return ""
}
