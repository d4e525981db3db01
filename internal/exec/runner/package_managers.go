package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// writePackageManagers creates shims for package managers in dir, so that they do not change the claude of this
// machine: a global installation, update or removal of its package does nothing and succeeds. Everything else goes to
// the package manager found on path. A package manager that is not installed gets no shim.
func writePackageManagers(dir, path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	var errs []error
	for _, name := range []string{"npm", "pnpm", "yarn", "bun"} {
		for _, at := range filepath.SplitList(path) {
			program := filepath.Join(at, name)
			if info, err := os.Stat(program); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				errs = append(errs, writeProgram(filepath.Join(dir, name), fmt.Sprintf(managerScript, quote(program))))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// managerScript is the text of the shims; %s is the real program.
const managerScript = `#!/bin/sh
# Made by claudeless: the claude of the machine stays as it is.
global= changes= claude=
for word do
	case $word in
	-g | --global | --location=global | global) global=1 ;;
	i | in | install | add | up | update | upgrade | un | uninstall | rm | remove) changes=1 ;;
	@anthropic-ai/claude-code | @anthropic-ai/claude-code@*) claude=1 ;;
	esac
done
if [ "$global$changes$claude" = 111 ]; then
	echo "up to date"
	exit 0
fi
exec %s "$@"
`
