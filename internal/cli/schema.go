package cli

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator"
)

// compileSchema compiles the text of --json-schema; errors are in the real
// CLI's words.
func compileSchema(text string) (*jsonschema.Schema, error) {
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, claudeErrorf("Error: --json-schema is not valid JSON: %v", ordered.SyntaxError([]byte(text)))
	}
	if _, ok := schema.(map[string]any); !ok {
		return nil, claudeErrorf("Error: --json-schema must be a JSON object")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // no file and no network for a $ref
	const url = "mem:///schema.json"
	var compiled *jsonschema.Schema
	if err = compiler.AddResource(url, schema); err == nil {
		compiled, err = compiler.Compile(url)
	}
	if err != nil {
		reason := strings.ReplaceAll(err.Error(), url, "schema")
		return nil, claudeErrorf("Error: --json-schema is not a valid JSON Schema: %s", strings.Join(strings.Fields(reason), " "))
	}
	return compiled, nil
}

// outputSchema is the schema of --json-schema for the simulator; an empty text
// is none.
func outputSchema(text string) (*simulator.Schema, error) {
	if text == "" {
		return nil, nil
	}
	compiled, err := compileSchema(text)
	if err != nil {
		return nil, err
	}
	return &simulator.Schema{Validate: func(value json.RawMessage) error {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
		if err != nil {
			return err
		}
		return schemaError(compiled.Validate(instance))
	}}, nil
}

// schemaError puts a validation error as path and demand: "/n: must be number".
func schemaError(err error) error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	printer := message.NewPrinter(language.English)
	var lines []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			at := "/" + strings.Join(e.InstanceLocation, "/")
			if len(e.InstanceLocation) == 0 {
				at = "root"
			}
			lines = append(lines, at+": "+demand(e.ErrorKind, printer))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	return errors.New(strings.Join(lines, ", "))
}

// demand words what a value must be as the real CLI's validator does, for the
// kinds its users meet; the rest keeps the library's words.
func demand(k jsonschema.ErrorKind, printer *message.Printer) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + strings.Join(k.Want, " or ")
	case *kind.Required:
		return "must have required property '" + strings.Join(k.Missing, "', '") + "'"
	case *kind.AdditionalProperties:
		return "must NOT have additional properties"
	case *kind.Enum:
		return "must be equal to one of the allowed values"
	case *kind.Const:
		return "must be equal to constant"
	default:
		return k.LocalizedString(printer)
	}
}
