package grpcmw

import (
	"slices"
	"strings"
)

// Members that are obeyed here and not by the channel.
var (
	ownOfDocument = []string{"retryThrottling"}
	ownOfMethod   = []string{"timeout", "retryPolicy", "hedgingPolicy"}
)

// channelJSON returns the document, whose names and types have been checked, without
// what is obeyed here. Each config of a method stays, also one that has but its names
// left: it goes on keeping that of its service from applying.
func (v value) channelJSON() string {
	return v.without(ownOfDocument, func(m member) string {
		if m.name != "methodConfig" || m.value.kind != '[' {
			return m.value.raw
		}
		configs := make([]string, len(m.value.items))
		for i, config := range m.value.items {
			configs[i] = config.without(ownOfMethod, func(m member) string { return m.value.raw })
		}
		return "[" + strings.Join(configs, ",") + "]"
	})
}

// without returns the object v without the members of these names, and the values of
// the others as text returns them.
func (v value) without(names []string, text func(member) string) string {
	var kept []string
	for _, m := range v.members {
		if !slices.Contains(names, m.name) {
			kept = append(kept, m.raw+":"+text(m))
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}
