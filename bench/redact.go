package main

import (
	"net/url"
	"strings"
)

// hidden stands for what is secret, as in net/url.
const hidden = "xxxxx"

// redactArgument redacts an argument of the command line, or the value in it, if it is a URL.
func redactArgument(argument string) string {
	flag, value := "", argument
	if name, v, ok := strings.Cut(argument, "="); ok && strings.HasPrefix(name, "-") {
		flag, value = name+"=", v
	}
	if !strings.Contains(value, "://") {
		return argument
	}
	return flag + redactURL(value)
}

// redactURL leaves out of a URL what may be secret: the password, a name without one, since some
// put a token there, the values of the query, and the fragment.
func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		// It is none: whatever is wrong with it, the same parts must not be seen.
		text, _, _ = strings.Cut(text, "#")
		text, _, _ = strings.Cut(text, "?")
		scheme, rest, ok := strings.Cut(text, "://")
		if !ok {
			scheme, rest = "", text
		} else {
			scheme += "://"
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = hidden + rest[at:]
		}
		return scheme + rest
	}
	if u.User != nil {
		if _, ok := u.User.Password(); ok {
			u.User = url.UserPassword(u.User.Username(), hidden)
		} else {
			u.User = url.User(hidden)
		}
	}
	var query []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, ok := strings.Cut(part, "=")
		switch {
		case ok:
			query = append(query, name+"=…")
		case part != "":
			query = append(query, "…")
		}
	}
	u.RawQuery = strings.Join(query, "&")
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}
