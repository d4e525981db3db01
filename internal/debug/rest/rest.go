// Package rest serves the hub over HTTP: the routes of the older debugger, with stricter checks, and newer routes. It also contains a
// [Client].
//
// A refused request changes nothing and is answered with a JSON object that contains an error code. The package keeps no state.
package rest

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

// Handler serves the routes. It does not check who sends a request; localhttp.Guard does. Pages of other allowed
// origins may call only the routes of the older clients.
func Handler(o Options) http.Handler {
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBodyBytes)
	a := &restAPI{o, compat.New(o.Hub)}
	mux := http.NewServeMux()
	table := slices.Concat(callRoutes(), olderClientRoutes(), controlRoutes(), replSessionRoutes(), externalMCPServerRoutes(a.External))
	open := map[string]bool{}
	for _, r := range table {
		mux.HandleFunc(r.method+" "+r.path, a.handlerOfRoute(r))
		if r.isForOlderClients && !open[r.path] {
			open[r.path] = true
			mux.HandleFunc("OPTIONS "+r.path, answerPreflight)
		}
	}
	doc := openAPIDocument(table)
	for _, path := range []string{"/openapi.json", "/api/openapi.json"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, doc) })
	}
	mux.HandleFunc("OPTIONS /api/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) { writeNotFoundOrMethodNotAllowed(w, r, mux) })
	mux.Handle("/", cmp.Or(o.Fallback, http.NotFoundHandler()))
	return mux
}

func (a *restAPI) handlerOfRoute(rt apiRoute) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if rt.isForOlderClients {
			allowAnyOrigin(w, r)
		} else if !localhttp.HasNoForeignOrigin(r) {
			localhttp.Refuse(w, http.StatusForbidden, "forbidden", "this route is for the debugger's own pages")
			return
		}
		if rt.stream != nil {
			rt.stream(a, w, r)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, a.MaxBody)
		out, err := rt.answer(a, r)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

// answerPreflight tells the browser that a page of another origin may call a route; forbidden origins were already refused.
func answerPreflight(w http.ResponseWriter, r *http.Request) {
	allowAnyOrigin(w, r)
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS")
	w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Authorization")
	w.WriteHeader(http.StatusNoContent)
}

func allowAnyOrigin(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Add("Vary", "Origin")
	}
}

// writeNotFoundOrMethodNotAllowed responds to a request that no route handles: 405 if the path has other methods, otherwise 404.
func writeNotFoundOrMethodNotAllowed(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/api/" {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		writeJSON(w, http.StatusNotFound, jsonFieldMap{"error": "not_found", "path": r.URL.Path})
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeJSON(w, http.StatusMethodNotAllowed, jsonFieldMap{"error": "method_not_allowed", "message": "this path takes " + strings.Join(allowed, ", "), "allowed": allowed})
}

var pathParameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(\w+)\}`) })

func openAPIDocument(table []apiRoute) jsonFieldMap {
	paths := map[string]jsonFieldMap{}
	for _, r := range table {
		name := strings.Trim(strings.NewReplacer("/api/", "", "{", "", "}", "", "-", "_", "/", "_").Replace(r.path), "_")
		operation := jsonFieldMap{
			"summary":     r.summary,
			"operationId": strings.ToLower(r.method) + "_" + name,
			"responses": jsonFieldMap{
				"200":     jsonFieldMap{"description": "OK"},
				"default": jsonFieldMap{"description": "Refused", "content": jsonContent(jsonFieldMap{"$ref": "#/components/schemas/Error"})},
			},
		}
		var parameters []jsonFieldMap
		for _, m := range pathParameter().FindAllStringSubmatch(r.path, -1) {
			parameters = append(parameters, jsonFieldMap{"name": m[1], "in": "path", "required": true, "schema": jsonFieldMap{"type": "string"}})
		}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		if r.method == "POST" {
			operation["requestBody"] = jsonFieldMap{"content": jsonContent(jsonFieldMap{"type": "object"})}
		}
		if paths[r.path] == nil {
			paths[r.path] = jsonFieldMap{}
		}
		paths[r.path][strings.ToLower(r.method)] = operation
	}
	return jsonFieldMap{
		"openapi": "3.1.0",
		"info":    jsonFieldMap{"title": "claudeless debug", "version": "1", "description": "Breakpoints on tool calls."},
		"paths":   paths,
		"components": jsonFieldMap{"schemas": jsonFieldMap{"Error": jsonFieldMap{
			"type": "object", "required": []string{"error"},
			"properties": jsonFieldMap{"error": jsonFieldMap{"type": "string"}, "message": jsonFieldMap{"type": "string"}},
		}}},
	}
}

func jsonContent(schema jsonFieldMap) jsonFieldMap {
	return jsonFieldMap{"application/json": jsonFieldMap{"schema": schema}}
}
