package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// SaveUpdate writes a permission update to a settings file and keeps the rest of the file. rules are the rules of the
// update as written in settings files.
func SaveUpdate(path string, u protocol.PermissionUpdate, rules []string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = []byte("{}"), nil
	}
	if err != nil {
		return err
	}
	file, err := plainjson.Parse(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var permissions plainjson.Object
	if old := file.Get("permissions"); old != nil {
		if permissions, err = plainjson.Parse(old); err != nil {
			return fmt.Errorf("%s: permissions: %w", path, err)
		}
	}
	if permissions, err = withUpdate(permissions, u, rules); err != nil {
		return fmt.Errorf("%s: permissions: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(file.With("permissions", permissions.Raw()).Indented()+"\n"), 0o644)
}

func withUpdate(o plainjson.Object, u protocol.PermissionUpdate, rules []string) (plainjson.Object, error) {
	key, values := u.Behavior, rules
	switch u.Type {
	case "setMode":
		mode, err := protocol.Marshal(u.Mode)
		return o.With("defaultMode", mode), err
	case "addDirectories", "removeDirectories":
		key, values = "additionalDirectories", u.Directories
	}
	var list []string
	if old := o.Get(key); old != nil {
		if err := json.Unmarshal(old, &list); err != nil {
			return o, err
		}
	}
	switch u.Type {
	case "removeRules", "removeDirectories":
		list = slices.DeleteFunc(list, func(v string) bool { return slices.Contains(values, v) })
	case "replaceRules":
		list = values
	default:
		for _, v := range values {
			if !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
	}
	raw, err := protocol.Marshal(list)
	return o.With(key, raw), err
}
