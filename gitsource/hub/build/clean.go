package build

import (
	"regexp"
	"strings"
)

// Internals that kustomize prints.
var internals = []struct {
	is   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`resid\.ResId\{Gvk:resid\.Gvk\{Group:"[^"]*", Version:"[^"]*", Kind:"([^"]*)", isClusterScoped:\w+\}, Name:"([^"]*)", Namespace:"[^"]*"\}`), "$1 $2"},
	{regexp.MustCompile(` &\{[^{}]*\}`), ""},
	{regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`), "…"},
	{regexp.MustCompile(`\s+`), " "},
}

// maxMessage limits kustomize's error messages: some have whole manifests.
const maxMessage = 500

// clean rewrites kustomize's messages: no mount directory, no memory addresses, no secrets, and
// only the first line if there are secrets.
func (b *builder) clean(message string) string {
	secrets := b.secrets
	for _, k := range b.parts {
		secrets = append(secrets, k.secrets(b.texts)...)
	}
	message = redact(message, secrets)
	if len(secrets) > 0 {
		message, _, _ = strings.Cut(message, "\n")
	}
	message = strings.ReplaceAll(message, mount+"/", "")
	message = strings.ReplaceAll(message, mount, ".")
	for _, i := range internals {
		message = i.is.ReplaceAllString(message, i.says)
	}
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage]) + " …"
	}
	return strings.TrimSpace(message)
}
