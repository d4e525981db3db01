package rest

import (
	"regexp"
	"strings"
	"sync"
)

var pathParameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(\w+)\}`) })

func openAPI(table []route) fields {
	paths := map[string]fields{}
	for _, r := range table {
		operation := fields{
			"summary":     r.summary,
			"operationId": operationID(r),
			"responses": fields{
				"200":     fields{"description": "OK"},
				"default": fields{"description": "Refused", "content": jsonContent(fields{"$ref": "#/components/schemas/Error"})},
			},
		}
		var parameters []fields
		for _, m := range pathParameter().FindAllStringSubmatch(r.path, -1) {
			parameters = append(parameters, fields{"name": m[1], "in": "path", "required": true, "schema": fields{"type": "string"}})
		}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		if r.method == "POST" {
			operation["requestBody"] = fields{"content": jsonContent(fields{"type": "object"})}
		}
		if paths[r.path] == nil {
			paths[r.path] = fields{}
		}
		paths[r.path][strings.ToLower(r.method)] = operation
	}
	return fields{
		"openapi": "3.1.0",
		"info":    fields{"title": "claudeless debug", "version": "1", "description": "Breakpoints on tool calls."},
		"paths":   paths,
		"components": fields{"schemas": fields{"Error": fields{
			"type": "object", "required": []string{"error"},
			"properties": fields{"error": fields{"type": "string"}, "message": fields{"type": "string"}},
		}}},
	}
}

func jsonContent(schema fields) fields {
	return fields{"application/json": fields{"schema": schema}}
}

func operationID(r route) string {
	path := strings.Trim(strings.NewReplacer("/api/", "", "{", "", "}", "", "-", "_", "/", "_").Replace(r.path), "_")
	return strings.ToLower(r.method) + "_" + path
}
