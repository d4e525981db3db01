package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

// Options configure a Handler. Hub must be set.
type Options struct {
	Hub      *debug.Hub
	External *debug.ExternalServers // nil means that the routes /api/mcp-* answer with status 503
	Fallback http.Handler           // handles every path that is not a route of this package; nil means 404
	MaxBody  int64                  // bounds the body of a request; 0 means 96 MiB
}

const defaultMaxBodyBytes = 96 << 20

type restAPI struct {
	Options
	olderClients *compat.OlderClients
}

type apiRoute struct {
	method, path, summary string
	isForOlderClients     bool // true for routes that older clients call from web pages, including pages of other allowed origins
	answer                func(a *restAPI, r *http.Request) (any, error)
	// stream, if set, handles the request; answer is then not used.
	stream func(a *restAPI, w http.ResponseWriter, r *http.Request)
}

const (
	codeExternalServersNotEnabled = "mcp_clients_unavailable"
	codePauseResumed              = "pause_resumed"
	codeSlowBody                  = "request_timeout"
	codeTooLarge                  = "payload_too_large"
)

type jsonFieldMap = compat.ResponseFields

// decodeBody decodes a request's body. An empty body leaves v unchanged.
func decodeBody(r *http.Request, v any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return debug.NewError(codeTooLarge, fmt.Sprintf("the body is over %d bytes", tooLarge.Limit))
		}
		if _, ok := errors.AsType[*localhttp.SlowBodyError](err); ok {
			return debug.NewError(codeSlowBody, err.Error())
		}
		return &debug.Error{Code: "invalid_payload", Message: err.Error()}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	return clientErrorFromJSONError(json.Unmarshal(data, v))
}

func handlerWithDecodedBody[T any](answer func(*restAPI, *http.Request, T) (any, error)) func(*restAPI, *http.Request) (any, error) {
	return func(a *restAPI, r *http.Request) (any, error) {
		var in T
		if err := decodeBody(r, &in); err != nil {
			return nil, err
		}
		return answer(a, r, in)
	}
}

func decodeAndReturnBody(r *http.Request, v any) (body json.RawMessage, err error) {
	if err = decodeBody(r, &body); err == nil && len(body) > 0 {
		err = clientErrorFromJSONError(json.Unmarshal(body, v))
	}
	return body, err
}

// clientErrorFromJSONError converts an error in the JSON of a request to a [debug.Error], and returns other errors unchanged.
func clientErrorFromJSONError(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &debug.Error{Code: "invalid_json", Message: fmt.Sprintf("%v at byte %d", err, syntax.Offset)}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &debug.Error{Code: "invalid_payload", Message: fmt.Sprintf("%s has the type %s, which is not allowed", cmp.Or(wrong.Field, "the body"), wrong.Value), Detail: jsonFieldMap{"parameter": wrong.Field}}
	}
	return err
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := plainjson.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, fmt.Appendf(nil, `{"error":"internal","message":%q}`, err.Error())
	} else {
		body = append(body, '\n')
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have closed the connection
}

func writeError(w http.ResponseWriter, err error) {
	status, body := http.StatusInternalServerError, debug.ErrorResponseMembers(err)
	if e, ok := errors.AsType[*debug.Error](err); ok {
		status = httpStatusOf(e.Code)
	}
	if body["missing_cids"] != nil { // values in the body are missing, not the resource that the path names
		status = http.StatusBadRequest
	}
	writeJSON(w, status, body)
}

// httpStatusOf returns the HTTP status of an error code; the default is 400 Bad Request.
func httpStatusOf(code string) int {
	switch code {
	case debug.CodeBreakpointNotFound, debug.CodePauseNotFound, debug.CodeSessionNotFound, debug.CodeEvalNotFound, debug.CodeContentIDNotFound,
		debug.CodeServerNotFound, debug.CodeToolNotFound, debug.CodeResourceNotFound:
		return http.StatusNotFound
	case debug.CodePauseResumed, codePauseResumed, debug.CodeSessionClosed, debug.CodeDuplicateName, debug.CodeServerNotConnected:
		return http.StatusConflict
	case codeTooLarge:
		return http.StatusRequestEntityTooLarge
	case codeSlowBody:
		return http.StatusRequestTimeout
	case debug.CodeEvalTimeout, debug.CodeCallTimeout:
		return http.StatusGatewayTimeout
	case debug.CodeExternalToolCallFailed, debug.CodeConnectFailed:
		return http.StatusBadGateway
	case debug.CodeHubClosed, debug.CodeLimit, codeExternalServersNotEnabled:
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
}

func externalMCPServerRoutes(serversOrNil *debug.ExternalServers) []apiRoute {
	table := []apiRoute{
		{method: "GET", path: "/api/mcp-clients", summary: "List external servers", answer: (*restAPI).listExternalServers},
		{method: "POST", path: "/api/mcp-clients/connect", summary: "Add an external server", answer: handlerWithDecodedBody((*restAPI).addAndConnectServer)},
		{method: "POST", path: "/api/mcp-clients/{name}/disconnect", summary: "Disconnect an external server", answer: func(a *restAPI, r *http.Request) (any, error) {
			return compat.StatusOKFields("name", r.PathValue("name")), a.External.DisconnectKeepingConfig(r.Context(), r.PathValue("name"))
		}},
		{method: "POST", path: "/api/mcp-clients/{name}/reconnect", summary: "Connect an external server again", answer: (*restAPI).reconnectServer},
		{method: "GET", path: "/api/mcp-tools", summary: "List external tools", answer: (*restAPI).listExternalTools},
		{method: "POST", path: "/api/mcp-tools/call", summary: "Call an external tool", answer: handlerWithDecodedBody((*restAPI).callExternalTool)},
		{method: "GET", path: "/api/mcp-resources", summary: "List external resources", answer: (*restAPI).listExternalResources},
		{method: "POST", path: "/api/mcp-resources/read", summary: "Read an external resource", answer: handlerWithDecodedBody((*restAPI).readExternalResource)},
	}
	if serversOrNil == nil {
		for i := range table {
			table[i].answer = func(*restAPI, *http.Request) (any, error) {
				return nil, &debug.Error{Code: codeExternalServersNotEnabled, Message: "start the debugger with --mcp-clients to use external servers"}
			}
		}
	}
	return table
}

func (a *restAPI) listExternalServers(*http.Request) (any, error) {
	out := map[string]any{}
	for _, c := range a.External.Servers() {
		out[c.Name] = c
	}
	return jsonFieldMap{"clients": out}, nil
}

// addAndConnectServer connects an external MCP server. entry is the server's configuration entry with an additional member "name".
func (a *restAPI) addAndConnectServer(r *http.Request, entry map[string]json.RawMessage) (any, error) {
	var name string
	if err := json.Unmarshal(entry["name"], &name); err != nil || name == "" {
		return nil, debug.NewMissingParameterError("name")
	}
	delete(entry, "name")
	config, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	tools, err := a.External.AddAndConnect(r.Context(), name, config)
	return compat.StatusOKFields("name", name, "tools", tools), err
}

func (a *restAPI) reconnectServer(r *http.Request) (any, error) {
	name := r.PathValue("name")
	tools, err := a.External.Reconnect(r.Context(), name)
	return compat.StatusOKFields("name", name, "tools", tools), err
}

func (a *restAPI) listExternalTools(r *http.Request) (any, error) {
	tools, err := a.External.Tools(r.URL.Query().Get("server"))
	return jsonFieldMap{"tools": tools}, err
}

type toolCallRequest struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

func (a *restAPI) callExternalTool(r *http.Request, in toolCallRequest) (any, error) {
	if in.Tool == "" {
		return nil, debug.NewMissingParameterError("tool")
	}
	if args := in.Arguments; len(args) > 0 && args[0] != '{' && string(args) != "null" {
		return nil, &debug.Error{Code: debug.CodeInvalidArguments, Message: "arguments must be an object", Detail: jsonFieldMap{"parameter": "arguments"}}
	}
	if string(in.Arguments) == "null" {
		in.Arguments = nil
	}
	result, err := a.External.CallAndRecord(r.Context(), in.Tool, in.Arguments)
	return jsonFieldMap{"result": result}, err
}

func (a *restAPI) listExternalResources(r *http.Request) (any, error) {
	resources, err := a.External.Resources(r.URL.Query().Get("server"))
	return jsonFieldMap{"resources": resources}, err
}

func (a *restAPI) readExternalResource(r *http.Request, in struct{ Server, URI string }) (any, error) {
	switch {
	case in.Server == "":
		return nil, debug.NewMissingParameterError("server")
	case in.URI == "":
		return nil, debug.NewMissingParameterError("uri")
	}
	return a.External.ReadFirstContentOfResource(r.Context(), in.Server, in.URI)
}
