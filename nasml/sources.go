package nasml

import "embed"

// Sources are the source files of all packages below nasml, as this program
// was built from them. Package code makes versions of them.
//
//go:embed */*.go */*/*.go */*/*/*.go
//go:embed */*.c */*.h */*/*/*.c */*/*/*.h
var Sources embed.FS
