package api

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
)

// Ciphertext is encrypted content in a place where a cluster needs the plain one.
type Ciphertext struct {
	// Tool is what encrypted it, such as SOPS.
	Tool string
	// Path is the path of the field; empty for the whole object.
	Path []string
}

// Message says what the object is, and what can be done.
func (c *Ciphertext) Message() string {
	what := "it is"
	if len(c.Path) > 0 {
		what = strings.Join(c.Path, ".") + " is"
	}
	return what + " encrypted with " + c.Tool + ", and gitfleet decrypts nothing: the object is not applied, and stays on clusters as it is there; " + DecryptionAdvice
}

// DecryptionAdvice says what to do about encrypted content.
const DecryptionAdvice = "write a SealedSecret or an ExternalSecret, whose controllers make the Secret on the cluster, or keep the Secret out of the repository"

// CiphertextIn returns what is encrypted in an object; nil if nothing is, or if its
// CiphertextAnnotation allows it.
func CiphertextIn(object map[string]any) *Ciphertext {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations[CiphertextAnnotation] == CiphertextApply {
		return nil
	}
	kind, _ := object["kind"].(string)
	if isSOPS(object["sops"]) && !strings.Contains(strings.ToLower(kind), "sops") { // a SopsSecret is decrypted on the cluster
		return &Ciphertext{Tool: "SOPS"}
	}
	if object["apiVersion"] != "v1" || kind != "Secret" && kind != "ConfigMap" {
		return nil
	}
	for _, field := range []string{"data", "stringData", "binaryData"} {
		values, _ := object[field].(map[string]any)
		encoded := field == "binaryData" || field == "data" && kind == "Secret"
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, _ := values[key].(string)
			tool := EncryptedWith(text)
			if tool == "" && encoded {
				if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
					tool = EncryptedWith(string(plain))
				}
			}
			if tool != "" {
				return &Ciphertext{Tool: tool, Path: []string{field, key}}
			}
		}
	}
	return nil
}

// isSOPS reports whether the value of a field sops is the metadata that SOPS writes.
func isSOPS(value any) bool {
	m, _ := value.(map[string]any)
	return m["mac"] != nil || m["lastmodified"] != nil || m["encrypted_regex"] != nil
}

// encryptedPrefixes are the beginnings of files that are encrypted as a whole.
var encryptedPrefixes = []struct{ prefix, tool string }{
	{"\x00GITCRYPT\x00", "git-crypt"},
	{"$ANSIBLE_VAULT;", "Ansible Vault"},
	{"age-encryption.org/v1\n", "age"},
	{"-----BEGIN AGE ENCRYPTED FILE-----", "age"},
	{"-----BEGIN PGP MESSAGE-----", "PGP"},
}

// EncryptedWith returns the tool that encrypted a text; empty if it is not encrypted. A file in
// which SOPS encrypted some values is.
func EncryptedWith(text string) string {
	if tool := EncryptedFile([]byte(text)); tool != "" {
		return tool
	}
	if strings.Contains(text, "ENC[AES256_GCM,data:") {
		return "SOPS"
	}
	return ""
}

// EncryptedFile returns the tool that encrypted a file as a whole; empty if none did.
func EncryptedFile(data []byte) string {
	start := bytes.TrimLeft(data, " \t\r\n")
	for _, p := range encryptedPrefixes {
		if bytes.HasPrefix(start, []byte(p.prefix)) {
			return p.tool
		}
	}
	return ""
}

// IsEncryptedDocument reports whether SOPS encrypted a document in such a way that it does not
// say which object it is.
func IsEncryptedDocument(document map[string]any) bool {
	version, _ := document["apiVersion"].(string)
	return isSOPS(document["sops"]) && (version == "" || EncryptedWith(version) != "")
}
