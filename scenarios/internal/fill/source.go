package fill

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// Source is one scenario file.
type Source struct {
	Index     *diag.SourceIndex
	Dir       string // directory to which file names are relative
	Templates bool   // strings may contain templates
}

// Locate returns a diagnostic at a value of the file. offset counts characters within a string value. If a response is
// only a string, the path of its text is the path of the response.
func (s *Source) Locate(path diag.Path, offset int, message string) diag.Diagnostic {
	if s == nil {
		return diag.Diagnostic{Message: message}
	}
	if last := len(path) - 1; last >= 0 && path[last] == "text" {
		if whole, ok := s.Index.Lookup(path[:last]); ok && whole.Kind == diag.KindString {
			path = path[:last]
		}
	}
	return s.Index.DiagnosticAtText(path, offset, message)
}

// ResolvePath returns the path of a file. A relative name is relative to dir.
func ResolvePath(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// ErrorReason returns the text of a file error without its path.
func ErrorReason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
