// Package differ compares settings by what they are as JSON.
package differ

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Fields lists the fields in which two settings differ, by the path of their JSON name: "bilevel.warmup: 15, not set".
func Fields[S any](a, b S) (all []string) {
	x, y := fields(a), fields(b)
	names := slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Keys(y))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if x[name] != y[name] {
			all = append(all, fmt.Sprintf("%s: %s, %s", name, cmp.Or(x[name], "not set"), cmp.Or(y[name], "not set")))
		}
	}
	return all
}

func fields(settings any) map[string]string {
	out := map[string]string{}
	var flatten func(path string, text json.RawMessage)
	flatten = func(path string, text json.RawMessage) {
		var tree map[string]json.RawMessage
		if text[0] != '{' || json.Unmarshal(text, &tree) != nil {
			out[path] = string(text)
			return
		}
		for name, value := range tree {
			if path != "" {
				name = path + "." + name
			}
			flatten(name, value)
		}
	}
	text, err := json.Marshal(settings)
	if err != nil {
		panic(err) // plain numbers and strings
	}
	flatten("", text)
	return out
}
