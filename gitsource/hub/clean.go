package hub

import (
	"regexp"
	"strings"
)

// What kustomize prints of its own insides.
var insides = []struct {
	is   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`resid\.ResId\{Gvk:resid\.Gvk\{Group:"[^"]*", Version:"[^"]*", Kind:"([^"]*)", isClusterScoped:\w+\}, Name:"([^"]*)", Namespace:"[^"]*"\}`), "$1 $2"},
	{regexp.MustCompile(` &\{[^{}]*\}`), ""},
	{regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`), "…"},
	{regexp.MustCompile(`\s+`), " "},
}

// maxMessage is the length of what is told of a kustomize error: some hold
// whole manifests.
const maxMessage = 500

// clean turns kustomize's words into ours: no mount, no addresses in memory,
// no secrets, and of what has secrets only the first line.
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
	for _, i := range insides {
		message = i.is.ReplaceAllString(message, i.says)
	}
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage]) + " …"
	}
	return strings.TrimSpace(message)
}
