package api

import (
	"bytes"
	"encoding/base64"
	"fmt"
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
	// Recipients are those who can decrypt it, as far as the object says so, such as
	// "age age1…".
	Recipients []string
	// Fault is why it is not decrypted, if that is not for want of a key.
	Fault string
}

// Message says what the object is, and what can be done.
func (c *Ciphertext) Message() string {
	what := "it is"
	if len(c.Path) > 0 {
		what = strings.Join(c.Path, ".") + " is"
	}
	why, advice := ", which gitfleet cannot decrypt", DecryptionAdvice
	if c.Tool == "SOPS" {
		why, advice = ", and it cannot be decrypted with the configured keys", KeyAdvice
		if c.Fault != "" {
			why, advice = ", and it cannot be decrypted", c.Fault
		}
		if len(c.Recipients) > 0 {
			why = " for " + strings.Join(c.Recipients, ", ") + why
		}
	}
	return what + " encrypted with " + c.Tool + why + ": the object is not applied, and stays on clusters as it is there; " + advice
}

// UnreadableMessage says what becomes of the objects of a document that SOPS has encrypted as a whole, and what can be done.
func UnreadableMessage(document map[string]any) string {
	whom := ""
	if all := recipients(document["sops"]); len(all) > 0 {
		whom = " for " + strings.Join(all, ", ")
	}
	return "this is encrypted with SOPS as a whole" + whom + ", and it cannot be decrypted with the configured keys, so that nothing says which objects it has: " +
		"they are not applied, and stay on clusters as they are there, and meanwhile no placement deletes what it no longer selects; encrypt values only (encrypted_regex), or " + KeyAdvice
}

// KeyAdvice says what to do about content that SOPS has encrypted.
const KeyAdvice = "configure the key (decryption.keyFile), or " + DecryptionAdvice

// DecryptionAdvice says what to do about encrypted content.
const DecryptionAdvice = "write a SealedSecret or an ExternalSecret, whose controllers make the Secret on the cluster, or keep the Secret out of the repository"

// Ciphertext returns what is encrypted in an object; nil if nothing is; see [CiphertextIn].
func (o *Object) Ciphertext() *Ciphertext {
	c := CiphertextIn(o.Content.Object)
	if c != nil {
		c.Fault = o.CiphertextFault
	}
	return c
}

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
		return &Ciphertext{Tool: "SOPS", Recipients: recipients(object["sops"])}
	}
	if object["apiVersion"] != "v1" || kind != "Secret" && kind != "ConfigMap" {
		return nil
	}
	for _, field := range []string{"data", "stringData", "binaryData"} {
		values, _ := object[field].(map[string]any)
		encoded := field == "binaryData" || field == "data" && kind == "Secret"
		if c := variablesOfSOPS(values, encoded); c != nil {
			return c
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, _ := values[key].(string)
			tool := EncryptedWith(text)
			if tool == "" && encoded {
				tool = EncryptedWith(decoded(text))
			}
			if tool != "" {
				return &Ciphertext{Tool: tool, Path: []string{field, key}}
			}
		}
	}
	return nil
}

// decoded returns what a text in base64 stands for; empty if it is none.
func decoded(text string) string {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return string(plain)
}

// variablesOfSOPS returns how the values of an object are encrypted that a generator has made from an env file encrypted by SOPS.
// Such a file has the metadata of SOPS among its variables. It returns nil if the values have no such metadata.
func variablesOfSOPS(values map[string]any, encoded bool) *Ciphertext {
	value := func(key string) string {
		text, _ := values[key].(string)
		if encoded {
			return decoded(text)
		}
		return text
	}
	if EncryptedWith(value("sops_mac")) == "" {
		return nil
	}
	c := &Ciphertext{Tool: "SOPS"}
	for _, name := range recipientNames {
		for i := 0; ; i++ {
			text := value(fmt.Sprintf("sops_%s__list_%d__map_%s", name[0], i, name[1]))
			if text == "" {
				break
			}
			c.Recipients = append(c.Recipients, name[0]+" "+text)
		}
	}
	return c
}

// recipientNames are the fields that name a recipient in the metadata of SOPS, by the list that it is in.
var recipientNames = [][2]string{{"age", "recipient"}, {"azure_kv", "name"}, {"gcp_kms", "resource_id"}, {"hc_vault", "key_name"}, {"hckms", "key_id"}, {"kms", "arn"}, {"pgp", "fp"}}

// recipients lists those whose keys the metadata of SOPS names.
func recipients(metadata any) []string {
	m, _ := metadata.(map[string]any)
	var all []string
	for _, name := range recipientNames {
		list, _ := m[name[0]].([]any)
		for _, item := range list {
			fields, _ := item.(map[string]any)
			if text, _ := fields[name[1]].(string); text != "" {
				all = append(all, name[0]+" "+text)
			}
		}
	}
	return all
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
