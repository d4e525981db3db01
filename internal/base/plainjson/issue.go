package plainjson

import (
	"fmt"
	"strings"
)

// Issue is one defect of a value. Its JSON form is that of zod.
type Issue struct {
	Expected  string    `json:"expected,omitempty"`
	Format    string    `json:"format,omitempty"`
	Origin    string    `json:"origin,omitempty"`
	Code      string    `json:"code"`
	Minimum   *int      `json:"minimum,omitempty"`
	Maximum   int       `json:"maximum,omitempty"`
	Inclusive bool      `json:"inclusive,omitempty"`
	Values    []string  `json:"values,omitempty"`
	Errors    [][]Issue `json:"errors,omitempty"` // the issues for each allowed kind of value, if there are several
	Keys      []string  `json:"keys,omitempty"`
	Path      []any     `json:"path"` // keys and indexes
	Message   string    `json:"message"`

	Received       string `json:"-"` // actual type, for the code invalid_type
	isContentIssue bool   // the value has the right type but the wrong content
	order          issueJSONKeyOrder
}

// Codes of issues.
const (
	IssueWrongType   = "invalid_type"
	IssueTooSmall    = "too_small"
	IssueUnknownKeys = "unrecognized_keys"
)

// issueJSONKeyOrder is the order in which the keys of an issue are written; 0 means the order of the fields of Issue.
type issueJSONKeyOrder int

const (
	keyOrderCodeFormatPathMessage issueJSONKeyOrder = iota + 1
	keyOrderCodeMessagePath
)

// MarshalJSON writes the keys in the order that i.order selects.
func (i Issue) MarshalJSON() ([]byte, error) {
	type plain Issue
	switch i.order {
	case keyOrderCodeFormatPathMessage:
		return Marshal(struct {
			Code    string `json:"code"`
			Format  string `json:"format"`
			Path    []any  `json:"path"`
			Message string `json:"message"`
		}{i.Code, i.Format, i.Path, i.Message})
	case keyOrderCodeMessagePath:
		return Marshal(struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Path    []any  `json:"path"`
		}{i.Code, i.Message, i.Path})
	}
	return Marshal(plain(i))
}

// WithMessageBeforePathInJSON returns the issue in the form whose JSON has the message before the path. The real CLI reports
// issues of single keys in this form.
func (i Issue) WithMessageBeforePathInJSON() Issue {
	i.order = keyOrderCodeMessagePath
	return i
}

func wrongTypeIssue(want, format, got string) Issue {
	return Issue{Expected: want, Format: format, Code: IssueWrongType, Path: []any{}, Received: got, Message: "Invalid input: expected " + want + ", received " + got}
}

// tooSmallIssue returns the issue for a value below its minimum. origin is its JSON type: "number", "string" or "array".
func tooSmallIssue(origin string, least int) Issue {
	return Issue{Origin: origin, Code: IssueTooSmall, Minimum: &least, Inclusive: true, Path: []any{}, Message: "Too small: expected " + describeLimit(origin, ">=", least)}
}

func tooBigIssue(origin string, maximum int) Issue {
	return Issue{Origin: origin, Code: "too_big", Maximum: maximum, Inclusive: true, Path: []any{}, Message: "Too big: expected " + describeLimit(origin, "<=", maximum)}
}

func describeLimit(origin, comparison string, limit int) string {
	switch origin {
	case "string":
		return fmt.Sprintf("string to have %s%d characters", comparison, limit)
	case "array":
		return fmt.Sprintf("array to have %s%d items", comparison, limit)
	}
	return fmt.Sprintf("%s to be %s%d", origin, comparison, limit)
}

func prependKeyToPathsInPlace(key any, issues []Issue) []Issue {
	for i := range issues {
		issues[i].Path = append([]any{key}, issues[i].Path...)
	}
	return issues
}

// LastKey returns the key of the value that has the issue; "" for an element of an array, and for the whole value.
func (i Issue) LastKey() (keyOrEmpty string) {
	if len(i.Path) > 0 {
		keyOrEmpty, _ = i.Path[len(i.Path)-1].(string)
	}
	return keyOrEmpty
}

// DottedPath returns the path of the value that has the issue, such as "hooks.0.command".
func (i Issue) DottedPath() string {
	steps := make([]string, len(i.Path))
	for at, step := range i.Path {
		steps[at] = fmt.Sprint(step)
	}
	return strings.Join(steps, ".")
}

// BracketedPath is like [Issue.DottedPath], but indexes are in brackets, as in "questions[0].header".
func (i Issue) BracketedPath() string {
	var b strings.Builder
	for _, step := range i.Path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// IssuesJSON returns the issues of a value as indented JSON; "" means that there are none. path is the path of the value.
func IssuesJSON(issues []Issue, path ...string) string {
	if len(issues) == 0 {
		return ""
	}
	for _, key := range path {
		issues = prependKeyToPathsInPlace(key, issues)
	}
	text, err := Indented(issues)
	if err != nil { // cannot happen: issues consist of strings and numbers
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
