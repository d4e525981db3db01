// Package outputschema checks the schemas of --json-schema and of the results of MCP tools, and checks values against
// them. Errors have the wording and the order of the real CLI's validator.
package outputschema

import (
	"bytes"
	"cmp"
	_ "embed" // for requirement_texts.txt
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Schema is the compiled schema of an output. It is made by [CompileJSONSchemaFlag].
type Schema struct {
	compiled  *jsonschema.Schema
	text      json.RawMessage
	valueName string // the name of the value in errors; empty means "root"
}

// CompileJSONSchemaFlag reads the text of --json-schema. Its errors have the wording of the real CLI.
func CompileJSONSchemaFlag(text string) (*Schema, error) {
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("--json-schema is not valid JSON: %w", plainjson.JavaScriptSyntaxErrorOf([]byte(text)))
	}
	if _, ok := schema.(map[string]any); !ok {
		return nil, errors.New("--json-schema must be a JSON object")
	}
	compiled, err := compileDraft7(schema)
	if err != nil {
		return nil, fmt.Errorf("--json-schema is not a valid JSON Schema: %w", err)
	}
	return &Schema{compiled: compiled, text: json.RawMessage(text)}, nil
}

// Validate returns nil for a valid value, otherwise an error that lists paths and requirements: "/n: must be number".
func (s *Schema) Validate(value json.RawMessage) error {
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	w := errorFormatter{valueName: s.valueName, value: value, positions: map[string]int{}}
	w.recordCheckOrder(s.text, "", true)
	return formatValidationError(s.compiled.Validate(instance), w)
}

// CompileMCPOutputSchema reads the output schema of an MCP tool. It ignores unknown keywords. Errors call the value "data".
func CompileMCPOutputSchema(raw json.RawMessage) (*Schema, error) {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if err := refuseUnknownTypes(schema); err != nil {
		return nil, err
	}
	compiled, err := compileAnyDraft(schema)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled, raw, "data"}, nil
}

// refuseUnknownTypes returns an error for the first unknown type. It visits keywords in alphabetical order.
func refuseUnknownTypes(schema any) error {
	object, _ := schema.(map[string]any)
	if name, ok := object["type"].(string); ok && !strings.Contains(" string number integer boolean null object array ", " "+name+" ") {
		return errors.New("type must be JSONType or JSONType[]: " + name)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		for _, schema := range subschemas(object, key) {
			if err := refuseUnknownTypes(schema); err != nil {
				return err
			}
		}
	}
	return nil
}

// compileDraft7 compiles a schema like the real CLI's validator: draft 7 only, and an unknown keyword is an error.
func compileDraft7(schema any) (*jsonschema.Schema, error) {
	if err := refuseOtherDialectsThanDraft7(schema); err != nil {
		return nil, err
	}
	compiled, err := compileAnyDraft(schema)
	if err != nil {
		return nil, err
	}
	return compiled, refuseUnknownKeywords(schema)
}

const schemaURL = "mem:///schema.json"

// compileAnyDraft compiles a schema. It reads the schema as draft 7 unless the schema names another draft.
func compileAnyDraft(schema any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft7)
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // a $ref cannot read files or the network
	compiler.UseRegexpEngine(func(expr string) (jsonschema.Regexp, error) { return match.CompileJS(expr) })
	if err := compiler.AddResource(schemaURL, schema); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(schemaURL)
	if err == nil {
		return compiled, nil
	}
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		return nil, formatValidationError(invalid.Err, errorFormatter{valueName: "data"})
	}
	var ref string
	if missing, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		ref = strings.TrimPrefix(missing.URL, schemaURL)
	} else if away, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		ref = away.URL
	} else {
		return nil, errors.New(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), schemaURL, "schema")), " "))
	}
	return nil, fmt.Errorf("can't resolve reference %s from id #", ref)
}

func refuseOtherDialectsThanDraft7(schema any) error {
	object, _ := schema.(map[string]any)
	dialect, ok := object["$schema"]
	if !ok {
		return nil
	}
	name, ok := dialect.(string)
	if !ok {
		return errors.New("$schema must be a string")
	}
	if strings.TrimSuffix(name, "#") != "http://json-schema.org/draft-07/schema" {
		return fmt.Errorf("no schema with key or ref %q", name)
	}
	return nil
}

// The keywords of JSON Schema, grouped by what their value contains: no schema, one schema, a list of schemas, or
// schemas by name. The values of "items" and "dependencies" have several forms.
const (
	keywordsWithoutSubschemas = " $schema $id $ref $comment title description default examples deprecated readOnly writeOnly type nullable const enum format" +
		" maximum minimum exclusiveMaximum exclusiveMinimum multipleOf maxLength minLength pattern contentMediaType contentEncoding" +
		" maxItems minItems uniqueItems maxProperties minProperties required "
	keywordsWithSingleSchema  = " not if then else propertyNames additionalProperties additionalItems items contains "
	keywordsWithSchemaList    = " anyOf oneOf allOf items "
	keywordsWithSchemasByName = " properties patternProperties dependencies definitions $defs "
)

// refuseUnknownKeywords returns an error for the alphabetically first keyword that the real CLI's strict validator refuses.
func refuseUnknownKeywords(schema any) error {
	object, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if key == "id" {
			return errors.New(`NOT SUPPORTED: keyword "id", use "$id" for schema ID`)
		}
		if !isKeywordInList(keywordsWithoutSubschemas+keywordsWithSingleSchema+keywordsWithSchemaList+keywordsWithSchemasByName, key) {
			return fmt.Errorf("strict mode: unknown keyword: %q", key)
		}
		for _, schema := range subschemas(object, key) {
			if err := refuseUnknownKeywords(schema); err != nil {
				return err
			}
		}
	}
	return checkKeywordsHaveRequiredCompanions(object)
}

func isKeywordInList(spaceSeparatedKeywords, keyword string) bool {
	return strings.Contains(spaceSeparatedKeywords, " "+keyword+" ")
}

// subschemas returns the schemas in the value of a keyword. It keeps the order of a list, and sorts a map by name.
func subschemas(object map[string]any, key string) (all []any) {
	switch value := object[key].(type) {
	case []any:
		if isKeywordInList(keywordsWithSchemaList, key) {
			return value
		}
	case map[string]any:
		if isKeywordInList(keywordsWithSingleSchema, key) {
			return []any{value}
		} else if isKeywordInList(keywordsWithSchemasByName, key) {
			for _, name := range slices.Sorted(maps.Keys(value)) {
				all = append(all, value[name])
			}
		}
	}
	return all
}

// checkKeywordsHaveRequiredCompanions returns an error if a keyword lacks another keyword without which it is invalid or has no
// effect, such as "if" without "then" and "else".
func checkKeywordsHaveRequiredCompanions(schemaObject map[string]any) error {
	has := func(key string) bool { _, ok := schemaObject[key]; return ok }
	switch _, tuple := schemaObject["items"].([]any); {
	case has("if") && !has("then") && !has("else"):
		return errors.New(`strict mode: "if" without "then" and "else" is ignored`)
	case has("nullable") && !has("type"):
		return errors.New(`"nullable" cannot be used without "type"`)
	case has("additionalItems") && !tuple:
		return errors.New(`strict mode: "additionalItems" is ignored when "items" is not an array of schemas`)
	}
	return nil
}

// formatValidationError formats a validation error as paths and requirements, such as "/n: must be number". If w.valueName is not
// empty, paths begin with it and have no colon: "data/n must be number".
func formatValidationError(validationError error, w errorFormatter) error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](validationError)
	if !ok {
		return validationError
	}
	w.printer = message.NewPrinter(language.English)
	w.appendLinesOfErrors(invalid)
	return errors.New(strings.Join(w.lines, ", "))
}

type errorFormatter struct {
	valueName string         // name of the value in errors, as in [Schema]
	value     []byte         // the checked value
	positions map[string]int // positions of errors by the pointers of their keywords; errors without one are sorted by their place in the value
	printer   *message.Printer
	lines     []string
}

// appendLinesOfErrors adds the lines for a validation error: first the lines for its causes, then the line for the error itself, if it
// has a message.
func (w *errorFormatter) appendLinesOfErrors(e *jsonschema.ValidationError) {
	slices.SortStableFunc(e.Causes, func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(compareByArrayIndex(a, b), w.keywordPosition(a)-w.keywordPosition(b), slices.Compare(a.InstanceLocation, b.InstanceLocation))
	})
	for _, cause := range e.Causes {
		w.appendLinesOfErrors(cause)
	}
	for _, text := range w.describeRequirement(e) {
		at := strings.Join(append([]string{w.valueName}, e.InstanceLocation...), "/")
		if w.valueName == "" {
			at = cmp.Or(at, "root") + ":"
		}
		w.lines = append(w.lines, at+" "+text)
	}
}

// keywordOrder are the keywords in the order in which the real CLI's validator checks them (observed with 2.1.330).
const keywordOrder = " type const enum not anyOf oneOf allOf $ref if then else maximum minimum exclusiveMaximum exclusiveMinimum multipleOf maxLength minLength pattern format" +
	" maxItems minItems additionalItems items contains uniqueItems maxProperties minProperties required propertyNames additionalProperties dependencies dependency properties patternProperties "

// recordCheckOrder numbers the parts of a schema in the order in which they are checked. Properties have the order of the text.
func (w *errorFormatter) recordCheckOrder(part json.RawMessage, pointer string, isSchema bool) {
	w.positions[pointer] = len(w.positions)
	object, _ := plainjson.Parse(part) // other values have no keywords
	if isSchema {
		slices.SortStableFunc(object, func(a, b plainjson.Member) int {
			return strings.Index(keywordOrder, " "+a.Key+" ") - strings.Index(keywordOrder, " "+b.Key+" ")
		})
	}
	for _, m := range object {
		w.recordCheckOrder(m.Value, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(m.Key), !isSchema || !isKeywordInList(keywordsWithSchemasByName, m.Key))
	}
	var list []json.RawMessage
	_ = json.Unmarshal(part, &list) // other values have no elements
	for n, element := range list {
		w.recordCheckOrder(element, pointer+"/"+strconv.Itoa(n), true)
	}
}

// compareByArrayIndex compares the places of errors in different elements of an array.
func compareByArrayIndex(a, b *jsonschema.ValidationError) int {
	for i := range min(len(a.InstanceLocation), len(b.InstanceLocation)) {
		n, errA := strconv.Atoi(a.InstanceLocation[i])
		m, errB := strconv.Atoi(b.InstanceLocation[i])
		if errA == nil && errB == nil && n != m {
			return n - m
		} else if a.InstanceLocation[i] != b.InstanceLocation[i] {
			return 0
		}
	}
	return 0
}

func (w *errorFormatter) keywordPosition(e *jsonschema.ValidationError) int {
	path := strings.Join(append([]string{strings.TrimPrefix(e.SchemaURL, schemaURL+"#")}, e.ErrorKind.KeywordPath()...), "/")
	return w.positions[strings.ReplaceAll(path, "/dependency/", "/dependencies/")]
}

// describeRequirement describes the violated requirement in the words of the real CLI's validator. For a value of
// --json-schema, the text also contains the allowed values or the actual value, as in "(got 3)".
func (w *errorFormatter) describeRequirement(e *jsonschema.ValidationError) []string {
	added := func(format string, value any) string {
		text, err := json.Marshal(value)
		if w.valueName != "" || err != nil {
			return ""
		}
		return fmt.Sprintf(format, text)
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Enum:
		return []string{"must be equal to one of the allowed values" + added(": %s", k.Want)}
	case *kind.Const:
		return []string{"must be equal to constant" + added(": %s", k.Want)}
	case *kind.Required:
		var list []string
		for _, name := range k.Missing {
			list = append(list, "must have required property '"+name+"'")
		}
		return list
	case *kind.AdditionalProperties:
		var list []string
		inValue := func(name string) int { return bytes.Index(w.value, fmt.Appendf(nil, "%q", name)) }
		slices.SortFunc(k.Properties, func(a, b string) int { return inValue(a) - inValue(b) })
		for _, name := range k.Properties {
			list = append(list, "must NOT have additional properties"+strings.ReplaceAll(added(" (%s is not allowed)", name), `"`, "'"))
		}
		return list
	case *kind.UniqueItems:
		low, high := min(k.Duplicates[0], k.Duplicates[1]), max(k.Duplicates[0], k.Duplicates[1])
		if w.valueName == "" {
			low, high = high, low
		}
		return []string{fmt.Sprintf("must NOT have duplicate items (items ## %d and %d are identical)", low, high)}
	case *kind.Not:
		return []string{"must NOT be valid"}
	case *kind.Dependency:
		return []string{"must have property " + strings.Join(k.Missing, ", ") + " when property " + k.Prop + " is present"}
	case *kind.Type:
		// The order of the types in the schema is not available here; null is usually written last.
		want := slices.DeleteFunc(slices.Clone(k.Want), func(name string) bool { return name == "null" })
		return []string{"must be " + strings.Join(append(want, k.Want[:len(k.Want)-len(want)]...), ",")}
	}
	for row := range strings.Lines(requirementTexts) {
		if keyword, text, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t"); keyword == append(e.ErrorKind.KeywordPath(), "")[0] {
			text = strings.ReplaceAll(text, "WANT", errorFieldAsText(e.ErrorKind, "Want"))
			if limit, is := strings.CutSuffix(text, " (got GOT)"); is {
				text = limit + added(" (got %s)", json.RawMessage(errorFieldAsText(e.ErrorKind, "Got")))
			}
			return []string{text}
		}
	}
	if len(e.Causes) > 0 {
		return nil
	}
	return []string{e.ErrorKind.LocalizedString(w.printer)}
}

// requirementTexts has the texts about keywords: the keyword, a tab, and the text with WANT and GOT for the values.
//
//go:embed requirement_texts.txt
var requirementTexts string

// errorFieldAsText returns the text of a field of an error. It has no meaning if the error has no such field.
func errorFieldAsText(k jsonschema.ErrorKind, fieldName string) string {
	v := reflect.ValueOf(k).Elem().FieldByName(fieldName)
	if v.IsValid() && v.Type() == reflect.TypeFor[*big.Rat]() {
		f, _ := v.Interface().(*big.Rat).Float64()
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}
