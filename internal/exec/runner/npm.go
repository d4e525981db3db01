package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// writeNpmShim creates an npm in dir that changes no claude of the machine: a global installation, update or removal of
// its package does nothing and succeeds. Everything else goes to the npm of path; without one there is no shim.
func writeNpmShim(dir, path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, at := range filepath.SplitList(path) {
		npm := filepath.Join(at, "npm")
		if info, err := os.Stat(npm); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		return writeProgram(filepath.Join(dir, "npm"), fmt.Sprintf(npmScript, quote(npm)))
	}
	return nil
}

// npmScript is the text of the shim; %s is the real npm.
const npmScript = `#!/bin/sh
# Made by claudeless: the claude of the machine stays as it is.
global= changes= claude=
for word do
	case $word in
	-g | --global | --location=global) global=1 ;;
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
