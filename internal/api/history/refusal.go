package history

import (
	"encoding/json"
	"errors"
	"strconv"
)

// RefusalError is the API's answer to a request that it refuses.
type RefusalError struct {
	Status  int
	Message string
	Code    string // details.error_code; "" means no details
	NoRetry bool   // the answer has the header x-should-retry: false
}

func (e *RefusalError) Error() string { return strconv.Itoa(e.Status) + " " + e.Message }

// InvalidRequest returns the error for a wrong value at a place in the request.
func InvalidRequest(at, problem string) *RefusalError {
	return &RefusalError{Status: 400, Message: at + ": " + problem}
}

func wrongTypeError(at string, raw []byte, err error) error {
	if !json.Valid(raw) {
		return errSyntax
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return InvalidRequest(at+"."+e.Field, "Input should be a valid "+jsonTypeName(e.Type.Kind().String()))
	}
	return InvalidRequest(at, "Input should be a valid dictionary")
}

func jsonTypeName(kind string) string {
	switch kind {
	case "bool":
		return "boolean"
	case "slice":
		return "list"
	case "ptr":
		return "string"
	}
	return kind
}
