package build

import (
	"regexp"
	"strings"
)

// internals are details of kustomize that appear in its messages.
var internals = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`resid\.ResId\{Gvk:resid\.Gvk\{Group:"[^"]*", Version:"[^"]*", Kind:"([^"]*)", isClusterScoped:\w+\}, Name:"([^"]*)", Namespace:"[^"]*"\}`), "$1 $2"},
	{regexp.MustCompile(` &\{[^{}]*\}`), ""},
	{regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`), "…"},
	{regexp.MustCompile(`\s+`), " "},
}

// maxMessage limits the length of kustomize's error messages: some contain whole manifests.
const maxMessage = 500

// clean removes the mount directory, memory addresses and secrets from a message of kustomize.
// If the build has secrets, it keeps only the first line.
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
		message = i.pattern.ReplaceAllString(message, i.replacement)
	}
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage]) + " …"
	}
	return strings.TrimSpace(message)
}
