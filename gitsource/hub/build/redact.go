package build

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"path"
	"regexp"
	"slices"
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

// noObject is what kustomize says of a resource that is not a Kubernetes object.
var noObject = regexp.MustCompile(`accumulating resources: accumulation err='accumulating resources from '[^']*': missing Resource metadata': must build at directory: '([^']*)': file is not directory`)

// maxMessage limits the length of kustomize's error messages: some contain whole manifests.
const maxMessage = 500

// clean removes the mount directory, memory addresses and secrets from a message of kustomize.
// If the build has secrets, it keeps only the first line.
func (b *builder) clean(message string) string {
	secrets := b.secrets
	for _, k := range b.parts {
		secrets = append(secrets, k.secrets(b.texts)...)
	}
	for name := range b.texts {
		secrets = append(secrets, b.graph.tree.Encrypted(name)...)
	}
	message = Redact(message, secrets)
	for name, f := range b.chartFiles {
		message = strings.ReplaceAll(message, name, f.source)
		message = strings.ReplaceAll(message, path.Base(name), f.source)
	}
	if len(secrets) > 0 {
		message, _, _ = strings.Cut(message, "\n")
	}
	message = strings.ReplaceAll(message, mount+"/", "")
	message = strings.ReplaceAll(message, mount, ".")
	for _, i := range internals {
		message = i.pattern.ReplaceAllString(message, i.replacement)
	}
	if found := noObject.FindStringSubmatch(message); found != nil {
		advice := "leave it out of the resources"
		if isGenerated(b, found[1]) {
			advice = "the directory has no kustomization.yaml, so that all its files are resources: write one that leaves it out"
		}
		message = strings.Replace(message, found[0], found[1]+" is not a Kubernetes object; "+advice, 1)
	}
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage]) + " …"
	}
	return strings.TrimSpace(message)
}

// Redact masks secret values in a message, in every way they may be written.
func Redact(message string, secrets []string) string { return NewRedactor(secrets).Redact(message) }

// A Redactor masks secret values in messages, in every way they may be written.
type Redactor struct {
	// forms are what is masked, by the first bytes.
	forms map[string][]string
}

const (
	// indexed is the number of bytes by which forms are found, and so the shortest that are masked.
	indexed = 3
	// maxTries limits the comparisons for one message, since who can commit may encrypt very many values that begin alike.
	maxTries = 200_000
)

// NewRedactor returns a Redactor of some values.
func NewRedactor(secrets []string) *Redactor {
	r := &Redactor{map[string][]string{}}
	for _, s := range secrets {
		for form := range strings.SplitSeq(s, "\n") {
			r.add(spellings(form))
		}
		r.add(spellings(s))
	}
	for begin, forms := range r.forms {
		// The longest first, since a shorter value may be the beginning of a longer one.
		slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
		r.forms[begin] = slices.Compact(forms)
	}
	return r
}

func (r *Redactor) add(forms []string) {
	for _, f := range forms {
		if len(f) >= indexed {
			r.forms[f[:indexed]] = append(r.forms[f[:indexed]], f)
		}
	}
}

// Redact masks the values in a message.
func (r *Redactor) Redact(message string) string {
	var out strings.Builder
	tries, end := 0, 0 // all before the end is written or masked
	for i := 0; i+indexed <= len(message); i++ {
		for _, f := range r.forms[message[i:i+indexed]] {
			if tries++; tries > maxTries {
				return "the message is not shown, since it may have encrypted values"
			}
			if !strings.HasPrefix(message[i:], f) {
				continue
			}
			if i >= end { // else it continues a value that overlaps it
				out.WriteString(message[end:i])
				out.WriteString("***")
			}
			end = max(end, i+len(f))
			break
		}
	}
	out.WriteString(message[end:])
	return out.String()
}

// spellings returns the ways in which a value may be written. Values of one or two characters
// are not masked, since they occur everywhere.
func spellings(s string) []string {
	s = strings.TrimSpace(s)
	if len(s) < 3 {
		return nil
	}
	out := []string{s, base64.StdEncoding.EncodeToString([]byte(s))}
	if plain, err := base64.StdEncoding.DecodeString(s); err == nil && len(plain) > 2 {
		out = append(out, string(plain))
	}
	if quoted, err := json.Marshal(s); err == nil {
		out = append(out, string(quoted[1:len(quoted)-1]))
	}
	return out
}

// secrets returns the values that a kustomization may put into Secrets. Any file that it copies
// may be one.
func (k *kustomization) secrets(texts map[string][]byte) []string {
	var out []string
	for _, literal := range k.literals {
		_, value, _ := strings.Cut(literal, "=")
		out = append(out, literal, value, strings.Trim(value, `"'`))
	}
	for _, f := range k.files {
		if !f.data || f.values {
			continue
		}
		text := string(texts[f.path])
		out = append(out, text)
		for line := range strings.Lines(text) {
			_, value, _ := strings.Cut(line, "=")
			out = append(out, value)
		}
	}
	return out
}

// isGenerated reports whether a file is a resource only because the kustomization that lists it is made up.
func isGenerated(b *builder, file string) bool {
	return slices.ContainsFunc(b.parts, func(k *kustomization) bool {
		return k.generated && slices.ContainsFunc(k.files, func(f reference) bool { return f.path == file })
	})
}
