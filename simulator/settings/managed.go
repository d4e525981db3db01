package settings

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
)

// addManaged adds the settings that the machine and the host impose, which override all others. Individual faults are
// reported and otherwise ignored (observed with 2.1.329).
func (s *Settings) addManaged(o Options) error {
	if o.ManagedDir != "" {
		parts, err := o.Glob(filepath.Join(o.ManagedDir, "managed-settings.d", "*.json"))
		if err != nil {
			return &ManagedError{o.ManagedDir}
		}
		for _, path := range append([]string{filepath.Join(o.ManagedDir, "managed-settings.json")}, parts...) {
			raw, err := o.ReadFile(path)
			if err != nil {
				continue // the file does not exist
			}
			if !s.applyManagedLayer(Layer{Source: SourceManaged, Path: path, Root: o.CWD, Raw: raw}, path, func(string) bool { return true }) {
				return &ManagedError{path}
			}
		}
	}
	if len(bytes.TrimSpace(o.Managed)) > 0 && !s.applyManagedLayer(Layer{Source: SourceManaged, Root: o.CWD, Raw: o.Managed}, "parent managed settings", isRestrictiveKey) {
		s.Warnings = append(s.Warnings, "managed settings: not a JSON object")
	}
	return nil
}

// applyManagedLayer merges the keys of a managed layer that are valid and wanted. It reports whether the layer is a
// JSON object.
func (s *Settings) applyManagedLayer(layer Layer, name string, wanted func(key string) bool) bool {
	var file map[string]any
	if err := json.Unmarshal(layer.Raw, &file); err != nil || file == nil {
		return false
	}
	bad := invalidKeys(file)
	for _, key := range bad {
		s.ManagedFaults = append(s.ManagedFaults, name+" ("+key+"): Failed schema validation. This field was ignored.")
	}
	maps.DeleteFunc(file, func(key string, _ any) bool { return slices.Contains(bad, key) || !wanted(key) })
	if permissions, ok := file["permissions"].(map[string]any); ok && !wanted("permissions.defaultMode") {
		delete(permissions, "defaultMode")
	}
	raw, err := json.Marshal(file)
	if err != nil {
		return false
	}
	layer.Raw = raw
	s.merge(layer)
	return true
}

// isRestrictiveKey reports whether a key of a host's managed settings is used. Only keys that restrict the session are
// used, not preferences.
func isRestrictiveKey(key string) bool {
	switch key {
	case "allowManagedHooksOnly", "allowManagedMcpServersOnly", "allowManagedPermissionRulesOnly", "allowedMcpServers", "availableModels",
		"deniedMcpServers", "disableAllHooks", "disableAutoMode", "env", "permissions", "sandbox":
		return true
	}
	return false
}

// dropUnmanaged removes the rules and hooks that managed settings disable. In a user's settings, disableAllHooks
// disables the user's hooks. In managed settings, it disables all hooks.
func (s *Settings) dropUnmanaged() {
	hooksOnly, all := false, false
	for _, layer := range s.Layers {
		var file struct {
			HooksOnly  bool `json:"allowManagedHooksOnly"`
			RulesOnly  bool `json:"allowManagedPermissionRulesOnly"`
			DisableAll bool `json:"disableAllHooks"`
		}
		if layer.Source != SourceManaged || json.Unmarshal(layer.Raw, &file) != nil {
			continue
		}
		hooksOnly, all = hooksOnly || file.HooksOnly, all || file.DisableAll
		s.Permissions.ManagedOnly = s.Permissions.ManagedOnly || file.RulesOnly
	}
	s.Hooks = slices.DeleteFunc(s.Hooks, func(h Hooks) bool {
		return all || (hooksOnly || s.DisableAllHooks) && h.Source != SourceManaged
	})
	s.DisableAllHooks = s.DisableAllHooks || hooksOnly
	if s.Permissions.ManagedOnly {
		s.Permissions.Rules = slices.DeleteFunc(s.Permissions.Rules, func(r Rule) bool { return r.Source != SourceManaged })
	}
}
