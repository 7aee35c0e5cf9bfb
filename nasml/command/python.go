package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

const noVenv = "Python's venv module is missing: install it (Debian and Ubuntu: apt install python3-venv) and run " +
	"the command again"

// probe prints a Python's version, its resolved path, and missing modules of virtual environments.
const probe = `import sys, os, importlib.util as u
print(sys.version_info[0], sys.version_info[1])
print(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))
print(*[m for m in ("venv", "ensurepip") if u.find_spec(m) is None])`

// findPython returns a Python 3.minor or newer that can make virtual environments: $NASML_PYTHON or the first in PATH.
// The error says what the first one found lacks.
func findPython(ctx context.Context, minor int) (string, error) {
	names := []string{"python3", "python3.13", "python3.12", "python3.11", "python3.10"}
	if own := os.Getenv("NASML_PYTHON"); own != "" {
		names = []string{own}
	}
	var problem error
	for _, name := range names {
		path, err := checkPython(ctx, name, minor)
		if err == nil {
			return path, nil
		}
		if problem == nil && !errors.Is(err, exec.ErrNotFound) {
			problem = err
		}
	}
	if problem == nil {
		problem = fmt.Errorf(
			"no python3 found: install Python 3.%d or newer (Debian: apt install python3 python3-venv) and run the "+
				"command again", minor)
	}
	return "", problem
}

func checkPython(ctx context.Context, name string, minor int) (string, error) {
	out, err := exec.CommandContext(ctx, name, "-c", probe).Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", name, err)
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 3 {
		return "", fmt.Errorf("%s does not answer like a Python: %q", name, out)
	}
	version := strings.ReplaceAll(lines[0], " ", ".")
	if n, err := strconv.Atoi(strings.TrimPrefix(version, "3.")); err != nil || n < minor {
		return "", fmt.Errorf("%s is Python %s, and 3.%d or newer is needed: install one, or name it with NASML_PYTHON",
			lines[1], version, minor)
	}
	if lines[2] != "" {
		return "", fmt.Errorf("%s (%s lacks %s)", noVenv, lines[1], strings.ReplaceAll(lines[2], " ", ", "))
	}
	return lines[1], nil
}
