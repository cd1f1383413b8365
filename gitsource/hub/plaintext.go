package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// plaintexts are the encrypted files of recent commits, decrypted. They are in memory only. Nil decrypts nothing.
type plaintexts struct {
	keys sops.Keys
	// version is that of the keys at the beginning of this load.
	version string
	// files are the newest versions of each file, the last that was read at the end.
	files map[string][]*decrypted
	// size is that of all values, and texts that of all texts, in bytes.
	size, texts int
	// gone counts the loads since a commit had a file.
	gone map[string]int
	// redactor masks all values; nil if they have changed.
	redactor *build.Redactor
}

// The memory for what is decrypted: the values of all versions, without which nothing is decrypted, and the texts, which are decrypted
// again if they were not kept.
const (
	maxValues = 32 << 20
	maxTexts  = 64 << 20
)

// A decrypted is one version of an encrypted file, or says why it cannot be decrypted.
type decrypted struct {
	*sops.File
	sum     [sha256.Size]byte
	version string
	err     error
}

// versions is how many versions of a file are kept.
const versions = 4

// Text implements tree.Plaintext.
func (p *plaintexts) Text(name string, data []byte) []byte {
	if !sops.IsEncrypted(data) {
		p.forget(name, len(p.files[name]))
		return data
	}
	sum := sha256.Sum256(data)
	known := p.files[name]
	i := slices.IndexFunc(known, func(d *decrypted) bool { return d.sum == sum && d.version == p.version })
	d := &decrypted{sum: sum, version: p.version}
	if i >= 0 {
		d = known[i]
		known = slices.Delete(known, i, i+1)
	}
	text := data
	if i < 0 || d.err == nil && d.Text == nil {
		file, err := sops.Decrypt(name, data, p.keys)
		if d.File == nil && err == nil && p.size+valuesSize(file) > maxValues {
			file, err = nil, fmt.Errorf("the encrypted values of the repository take more than %s together", limit.Size(maxValues))
		}
		if d.err = err; err == nil {
			text = file.Text
			if p.texts+len(text) > maxTexts {
				file.Text = nil
			}
			if p.texts += len(file.Text); d.File == nil {
				p.size, p.redactor = p.size+valuesSize(file), nil
			}
			d.File = file
		}
	} else if d.err == nil {
		text = d.Text
	}
	p.files[name] = append(known, d)
	p.forget(name, len(p.files[name])-versions)
	return text
}

// setCiphertextFault sets why the objects of a file are not decrypted. That they lack a key, as each of them says, is not the reason.
func (p *parsed) setCiphertextFault(name, why string) {
	p.Problems = slices.DeleteFunc(p.Problems, func(found problem.Problem) bool {
		return found.Path == name && found.Severity == problem.Failure && strings.HasSuffix(found.Message, api.KeyAdvice)
	})
	for _, it := range p.items {
		if it.object != nil && it.origin.Path == name {
			it.object.CiphertextFault = why
		}
	}
}

func valuesSize(f *sops.File) (n int) {
	for _, v := range f.Values {
		n += len(v)
	}
	return n
}

// forget forgets the oldest versions of a file.
func (p *plaintexts) forget(name string, n int) {
	for ; n > 0; n-- {
		if f := p.files[name][0].File; f != nil {
			p.size, p.texts, p.redactor = p.size-valuesSize(f), p.texts-len(f.Text), nil
		}
		p.files[name] = p.files[name][1:]
	}
	if len(p.files[name]) == 0 {
		delete(p.files, name)
	}
}

// forgetGone forgets the files that the last commits did not have.
func (p *plaintexts) forgetGone(t *tree.Tree) {
	if p == nil {
		return
	}
	for name, known := range p.files {
		if there, err := t.IsFile(name); err != nil || there {
			delete(p.gone, name)
		} else if p.gone[name]++; p.gone[name] > 2 {
			p.forget(name, len(known))
			delete(p.gone, name)
		}
	}
}

// Values implements tree.Plaintext.
func (p *plaintexts) Values(name string) []string {
	if d := p.last(name); d != nil && d.File != nil {
		return d.Values
	}
	return nil
}

// Version implements tree.Plaintext.
func (p *plaintexts) Version() string { return p.version }

func (p *plaintexts) last(name string) *decrypted {
	if known := p.files[name]; len(known) > 0 {
		return known[len(known)-1]
	}
	return nil
}

// markSecrets marks the fields of the objects of some files, or of the build of a kustomization that reads them, that have
// values which are encrypted in the files, and reports what cannot be decrypted.
func (p *plaintexts) markSecrets(out *parsed, kustomization string, files ...string) {
	if p == nil {
		return
	}
	var values []string
	var key []byte
	for _, name := range files {
		switch d := p.last(name); {
		case d == nil:
		case d.err == nil:
			values, key = append(values, d.Values...), append(key, d.Key[:]...)
		case kustomization != "" || !errors.Is(d.err, sops.ErrNoKey): // else each object of the file says so
			out.Problems = append(out.Problems, problem.Problem{
				Origin: api.Origin{Path: name, Kustomization: kustomization}, Severity: problem.Failure, Undecrypted: true,
				Message: "it is encrypted with SOPS and cannot be decrypted, so that its objects are not applied, and stay on clusters as they are there: " + d.err.Error(),
			})
			if !errors.Is(d.err, sops.ErrNoKey) {
				out.setCiphertextFault(name, d.err.Error())
			}
		}
	}
	if key == nil {
		return
	}
	secrets := secretsOf(values)
	sum := sha256.Sum256(key)
	for _, it := range out.items {
		if it.object == nil || it.isBuilder() {
			refuseSecrets(out, it, secrets)
			continue
		}
		content := it.object.Content.Object
		if paths := secrets.find(content, nil, nil); len(paths) > 0 {
			api.SetSecretFields(content, paths)
			it.object.HashKey = sum[:]
			it.object.Hash, _ = api.HashOf(content, it.object.HashKey) // the object was hashed before, so that this cannot fail
		}
	}
	for i, t := range out.templates {
		out.templates[i].encrypted = len(secrets.find(t.object, nil, nil)) > 0
	}
}

// secrets are values that are encrypted in the repository.
type secrets struct {
	exact map[string]bool
	parts map[string][]string // values that are long enough to be recognized within others, by their first bytes
	tries *int                // comparisons that are left; then every text counts as a secret
}

// maxTries limits the comparisons for the objects of one file or build, since who can commit may encrypt very many values that
// begin alike.
const maxTries = 20_000_000

// shortest is the length of the shortest value that is looked for within others.
const shortest = 6

func secretsOf(values []string) secrets {
	tries := maxTries
	s := secrets{map[string]bool{}, map[string][]string{}, &tries}
	for _, v := range values {
		if v == "" || s.exact[v] {
			continue
		}
		s.exact[v] = true
		if len(v) >= shortest {
			s.parts[v[:shortest]] = append(s.parts[v[:shortest]], v)
		}
	}
	return s
}

func (s secrets) in(text string) bool {
	if s.exact[text] {
		return true
	}
	for i := 0; i+shortest <= len(text) && len(s.parts) > 0; i++ {
		for _, part := range s.parts[text[i:i+shortest]] {
			if *s.tries--; *s.tries < 0 || strings.HasPrefix(text[i:], part) {
				return true
			}
		}
	}
	return *s.tries < 0
}

// find appends the paths of the values that are or contain a secret, also in base64. What identifies an object is none.
func (s secrets) find(v any, at []string, found [][]string) [][]string {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			if len(at) == 0 && (key == "apiVersion" || key == "kind") || len(at) == 1 && at[0] == "metadata" && (key == "name" || key == "namespace") {
				continue
			}
			found = s.find(field, append(at[:len(at):len(at)], key), found)
		}
	case []any:
		for i, item := range v {
			found = s.find(item, append(at[:len(at):len(at)], fmt.Sprint(i)), found)
		}
	case nil:
	default:
		text := fmt.Sprint(v)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if s.in(text) || s.exact[boolText(v)] || err == nil && s.in(string(decoded)) {
			found = append(found, at)
		}
	}
	return found
}

// boolText returns a truth value as SOPS encrypts it.
func boolText(v any) string {
	switch v {
	case true:
		return "True"
	case false:
		return "False"
	}
	return ""
}

// refuseSecrets reports configuration of the fleet with a secret: it is shown in many places.
func refuseSecrets(out *parsed, it *item, s secrets) {
	var value any
	switch {
	case it.placement != nil:
		value = it.placement
	case it.cluster != nil:
		value = it.cluster
	case it.clusterOverride != nil:
		value = it.clusterOverride
	case it.override != nil:
		value = it.override
	case it.vars != nil:
		value = it.vars
	case it.gate != nil:
		value = it.gate
	case it.isBuilder():
		value = it.object.Content.Object
	default:
		return
	}
	text, err := json.Marshal(value)
	var plain any
	if err != nil || json.NewDecoder(bytes.NewReader(text)).Decode(&plain) != nil || len(s.find(plain, nil, nil)) > 0 {
		out.Problems = append(out.Problems, problem.Problem{Origin: it.origin, Severity: problem.Error,
			Message: it.id.String() + " has an encrypted value, and is shown in many places; write the value in plain text, or put it into an object that is placed"})
	}
}

// scrub masks the encrypted values of all files in a message.
func (p *plaintexts) scrub(message string) string {
	if p == nil {
		return message
	}
	if p.redactor == nil {
		var values []string
		for _, known := range p.files {
			for _, d := range known {
				if d.File != nil {
					values = append(values, d.Values...)
				}
			}
		}
		p.redactor = build.NewRedactor(values)
	}
	return p.redactor.Redact(message)
}

// mask masks them in problems.
func (p *plaintexts) mask(problems problem.List) {
	if p == nil {
		return
	}
	for i := range problems {
		problems[i].Message = p.scrub(problems[i].Message)
	}
}
