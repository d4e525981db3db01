package connection

import (
	"encoding/json"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// checkElicitation checks a question to the user against the protocol; nil means that it is valid. The error has the
// text of the real CLI 2.1.330. Elicitations of revision 2026-07-28 have no ids.
func checkElicitation(params json.RawMessage, isModern bool) error {
	if !plainjson.IsSet(params) {
		params = nil
	}
	if issues := elicitation(isModern)(params); issues != nil {
		return &Error{Code: CodeInvalidParams, Message: "Invalid elicitation request: " + describe(prefixIssues("params", issues))}
	}
	return nil
}

func elicitation(isModern bool) shape {
	text := ofType("string")
	url := []member{required("mode", oneOf("url")), required("message", text)}
	if !isModern {
		url = append(url, required("elicitationId", text))
	}
	form := object(required("type", oneOf("object")), required("properties", recordOf(question())), optional("required", listOf(text)))
	return union(
		object(optional("mode", oneOf("form")), required("message", text), required("requestedSchema", form)),
		object(append(url, required("url", text))...),
	)
}

// question is the schema of one field of a form.
func question() shape {
	text, number := ofType("string"), ofType("number")
	field := func(kind shape, others ...member) shape {
		return object(append([]member{required("type", kind), optional("title", text), optional("description", text)}, others...)...)
	}
	options := listOf(object(required("const", text), required("title", text)))
	one := func(values ...member) shape {
		return field(oneOf("string"), append(values, optional("default", text))...)
	}
	many := func(items shape) shape {
		return field(oneOf("array"), optional("minItems", number), optional("maxItems", number), required("items", items), optional("default", listOf(text)))
	}
	choice := union(
		one(required("enum", listOf(text)), optional("enumNames", listOf(text))),
		union(one(required("enum", listOf(text))), one(required("oneOf", options))),
		union(many(object(required("type", oneOf("string")), required("enum", listOf(text)))), many(object(required("anyOf", options)))),
	)
	return union(
		choice,
		field(oneOf("boolean"), optional("default", ofType("boolean"))),
		field(oneOf("string"), optional("minLength", number), optional("maxLength", number),
			optional("format", oneOf("email", "uri", "date", "date-time")), optional("default", text)),
		field(oneOf("number", "integer"), optional("minimum", number), optional("maximum", number), optional("default", number)),
	)
}
