package grpcmw_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast/grpcmw"
)

func refuse(context.Context, string) (net.Conn, error) {
	return nil, errors.New("no connection in this test")
}

// Documents with one config, of the method s/m.
func method(members string) string {
	return `{"methodConfig":[{"name":[{"service":"s","method":"m"}],` + members + `}]}`
}
func hedging(members string) string { return method(`"hedgingPolicy":{` + members + `}`) }
func codesOf(list string) string    { return hedging(`"maxAttempts":2,"nonFatalStatusCodes":` + list) }
func retry(members string) string   { return method(`"retryPolicy":{` + members + `}`) }
func throttling(members string) string {
	return `{"methodConfig":[],"retryThrottling":{` + members + `}}`
}

// retryWith is a good retry policy with one member written otherwise, or left out.
func retryWith(name, text string) string {
	var members []string
	for _, m := range [][2]string{
		{"maxAttempts", "4"}, {"initialBackoff", `"0.1s"`}, {"maxBackoff", `"1s"`}, {"backoffMultiplier", "2"},
		{"retryableStatusCodes", `["UNAVAILABLE"]`},
	} {
		if m[0] == name {
			m[1] = text
		}
		if m[1] != "" {
			members = append(members, `"`+m[0]+`":`+m[1])
		}
	}
	return retry(strings.Join(members, ","))
}

// Why the channel may judge a document otherwise.
const (
	agrees     = ""
	blind      = "grpc-go knows no hedgingPolicy"
	caseless   = "grpc-go wants the names of codes in upper case"
	caseKeys   = "grpc-go matches names in any case"
	lastWins   = "grpc-go mixes the members of one name"
	nullIsZero = "grpc-go takes null for an empty element"
	laxTime    = "grpc-go wants a digit before or after the point, and takes a sign at the seconds"
	anyTimeout = "grpc-go ignores a timeout below 0, and ends calls at once by one of 0"
	anyTokens  = "grpc-go does not count decimals"
	alone      = "grpc-go does not check retryThrottling without a methodConfig"
	anyCode    = "grpc-go takes OK for a failure that is retried"
	nameless   = "grpc-go does not check what has no name"
	anyName    = "grpc-go does not look into names"
	anySize    = "grpc-go takes a negative size, and lets no message through"
	noSelfTest = "the policy is not registered with the channel"
	deep       = "grpc-go bounds neither size nor nesting"
	notUTF8    = "grpc-go repairs text that is not UTF-8"
)

// configs is the suite of service configs. Rules are those of gRFC A6 by the numbers
// that the tests of this package use: V for the validity of a config, R for retries, A21
// for the rejection of a whole document, and S where A6 says nothing.
var configs = []struct {
	rule, document string
	want           string // as describe writes it, if the document is good
	err            string // else what the error is after its prefix
	channel        string // why grpc-go accepts what is bad, or does not accept what is good
}{
	// Documents.
	{"S", `{}`, "", "", agrees},
	{"S", ` { "unknown" : [ 1e400 , {"a":null} ] } `, "", "", agrees},
	{"S", `{"methodConfig":null,"retryThrottling":null,"loadBalancingConfig":null,"healthCheckConfig":null}`, "", "", agrees},
	{"S", `{"methodConfig":[]}`, "", "", agrees},
	{"S", ``, "", `document: at byte 0: unexpected end of JSON input`, agrees},
	{"S", `{"methodConfig":[}`, "", `document: at byte 18: invalid character '}' looking for beginning of value`, agrees},
	{"S", `{} {}`, "", `document: at byte 4: invalid character '{' after top-level value`, agrees},
	{"S", `[]`, "", `document: a list is not an object`, agrees},
	{"S", `null`, "", `document: null is not an object`, nullIsZero},
	{"S", `"x"`, "", `document: "x" is not an object`, agrees},
	{"S", "{\"a\xff\":1}", "", `document: is not UTF-8`, notUTF8},
	{"S", `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "", `a` + strings.Repeat("[0]", 63) + `: is nested more than 64 deep`, deep},
	{"S", `{"a":` + strings.Repeat("[", 63) + "1" + strings.Repeat("]", 63) + `}`, "", "", agrees},
	{"S", `{"` + strings.Repeat("x", 60) + `":{"` + strings.Repeat("y", 300) + `":{"z":1,"z":1}}}`, "",
		strings.Repeat("x", 60) + `["` + strings.Repeat("y", 64) + `…"].z: is there twice`, lastWins},
	{"S", `{"a":` + strings.Repeat(`{"`+strings.Repeat("x", 49)+`":`, 6) + `{"z":1,"z":1}` + strings.Repeat("}", 7), "",
		`a` + strings.Repeat("."+strings.Repeat("x", 49), 5) + `.xxxx…: is there twice`, lastWins},
	{"S", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, "", `document: has 1048584 bytes, which is more than 1048576`, deep},
	{"S", `{"a":1,"a":2}`, "", `a: is there twice`, lastWins},
	{"S", `{"methodConfig":[{"timeout":"1s","\u0074imeout":"2s"}]}`, "", `methodConfig[0].timeout: is there twice`, lastWins},
	{"S", `{"a b":[{"` + strings.Repeat("é", 40) + `":1,"` + strings.Repeat("é", 40) + `":1}]}`, "",
		`["a b"][0]["` + strings.Repeat("é", 32) + `…"]: is there twice`, lastWins},
	{"S", `{"MethodConfig":[]}`, "", `MethodConfig: is spelled methodConfig`, caseKeys},
	{"S", `{"retrythrottling":{"maxTokens":1,"tokenRatio":1}}`, "", `retrythrottling: is spelled retryThrottling`, caseKeys},
	{"S", method(`"hedgingpolicy":{}`), "", `methodConfig[0].hedgingpolicy: is spelled hedgingPolicy`, blind},
	{"S", method(`"retryPolicy":{"maxAttemptſ":2}`), "", `methodConfig[0].retryPolicy["maxAttemptſ"]: is spelled maxAttempts`, agrees},
	{"S", `{"methodConfig":{}}`, "", `methodConfig: an object is not a list`, agrees},
	{"S", `{"methodConfig":[null]}`, "", `methodConfig[0]: null is not an object`, nullIsZero},
	{"S", `{"methodConfig":[3]}`, "", `methodConfig[0]: 3 is not an object`, agrees},

	// What is the channel's own.
	{"S", method(`"waitForReady":true,"maxRequestMessageBytes":1024,"maxResponseMessageBytes":0`), "s/m", "", agrees},
	{"S", method(`"waitForReady":null,"timeout":null,"hedgingPolicy":null`), "s/m", "", agrees},
	{"S", method(`"waitForReady":"yes"`), "", `methodConfig[0].waitForReady: "yes" is neither true nor false`, agrees},
	{"S", method(`"maxRequestMessageBytes":"1024"`), "", `methodConfig[0].maxRequestMessageBytes: "1024" is not a number`, agrees},
	{"S", method(`"maxRequestMessageBytes":1e3`), "", `methodConfig[0].maxRequestMessageBytes: 1e3 is not an integer of 64 bits`, agrees},
	{"S", method(`"maxResponseMessageBytes":9223372036854775808`), "",
		`methodConfig[0].maxResponseMessageBytes: 9223372036854775808 is not an integer of 64 bits`, agrees},
	{"S", method(`"maxResponseMessageBytes":-1`), "", `methodConfig[0].maxResponseMessageBytes: -1 is negative`, anySize},
	{"S", `{"loadBalancingPolicy":"round_robin"}`, "", "", agrees},
	{"S", `{"loadBalancingPolicy":{}}`, "", `loadBalancingPolicy: an object is not a string`, agrees},
	{"S", `{"loadBalancingConfig":[{"round_robin":{}}]}`, "", "", agrees},
	{"S", `{"loadBalancingConfig":[{"not_registered":{}}]}`, "", "", noSelfTest},
	{"S", `{"loadBalancingConfig":{"round_robin":{}}}`, "", `loadBalancingConfig: an object is not a list`, agrees},
	{"S", `{"healthCheckConfig":{"serviceName":"s"}}`, "", "", agrees},
	{"S", `{"healthCheckConfig":{"serviceName":1}}`, "", `healthCheckConfig.serviceName: 1 is not a string`, agrees},
	{"S", `{"healthCheckConfig":"s"}`, "", `healthCheckConfig: "s" is not an object`, agrees},

	// Names.
	{"V9", `{"methodConfig":[{"name":[{"service":"s","method":"m"},{"service":"s"},{}]}]}`, "s/m s/ /", "", agrees},
	{"V9", `{"methodConfig":[{"name":[{"service":"","method":""}]}]}`, "/", "", agrees},
	{"V9", `{"methodConfig":[{"name":[{"service":null}]}]}`, "/", "", agrees},
	{"V9", `{"methodConfig":[{"name":[{"service":"s"}]},{"name":[{"service":"t"}]}]}`, "s/; t/", "", agrees},
	{"V9", `{"methodConfig":[{"name":[{"method":"m"}]}]}`, "", `methodConfig[0].name[0]: has the method "m" and no service`, agrees},
	{"V9", `{"methodConfig":[{"name":[{"service":"s","method":"m"},{"service":"s","method":"m"}]}]}`, "",
		`methodConfig[0].name[1]: "s/m" is named in methodConfig[0].name[0] already`, agrees},
	{"V9", `{"methodConfig":[{"name":[{"service":"s"}]},{"name":[{"service":"t"},{"service":"s","method":""}]}]}`, "",
		`methodConfig[1].name[1]: "s" is named in methodConfig[0].name[0] already`, agrees},
	{"V9", `{"methodConfig":[{"name":[{}]},{"name":[{}]}]}`, "", `methodConfig[1].name[0]: the default is named in methodConfig[0].name[0] already`, agrees},
	{"V9", `{"methodConfig":[{"name":[{"service":1}]}]}`, "", `methodConfig[0].name[0].service: 1 is not a string`, agrees},
	{"V9", `{"methodConfig":[{"name":{"service":"s"}}]}`, "", `methodConfig[0].name: an object is not a list`, agrees},
	{"V9", `{"methodConfig":[{"name":[null]}]}`, "", `methodConfig[0].name[0]: null is not an object`, nullIsZero},
	{"S", `{"methodConfig":[{"name":[{"service":"/s"}]}]}`, "", `methodConfig[0].name[0].service: "/s" begins with a slash`, anyName},
	{"S", `{"methodConfig":[{"name":[{"service":"s","method":"s/m"}]}]}`, "", `methodConfig[0].name[0].method: "s/m" contains a slash`, anyName},
	{"V10", `{"methodConfig":[{"timeout":"1s"},{"name":[],"timeout":"2s"}]}`, "timeout 1s; timeout 2s", "", agrees},
	{"V10", `{"methodConfig":[{"retryPolicy":{}}]}`, "", `methodConfig[0].retryPolicy.maxAttempts: is missing`, nameless},

	// Time-outs, and with them durations.
	{"V4", method(`"timeout":"1s"`), "s/m timeout 1s", "", agrees},
	{"V4", method(`"timeout":"0.5s"`), "s/m timeout 500ms", "", agrees},
	{"V4", method(`"timeout":"0.000000001s"`), "s/m timeout 1ns", "", agrees},
	{"V4", method(`"timeout":"007.10s"`), "s/m timeout 7.1s", "", agrees},
	{"V4", method(`"timeout":"9223372036.854775807s"`), "s/m timeout 2562047h47m16.854775807s", "", agrees},
	{"V4", method(`"timeout":"9223372036.854775808s"`), "s/m timeout 2562047h47m16.854775807s", "", agrees},
	{"V4", method(`"timeout":"315576000000s"`), "s/m timeout 2562047h47m16.854775807s", "", agrees},
	{"V4", method(`"timeout":"315576000001s"`), "", `methodConfig[0].timeout: "315576000001s" is longer than 315576000000 seconds`, agrees},
	{"V4", method(`"timeout":"99999999999999999999s"`), "",
		`methodConfig[0].timeout: "99999999999999999999s" is longer than 315576000000 seconds`, agrees},
	{"V4", method(`"timeout":"0.0000000001s"`), "", `methodConfig[0].timeout: "0.0000000001s" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":"500ms"`), "", `methodConfig[0].timeout: "500ms" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":""`), "", `methodConfig[0].timeout: "" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":"1"`), "", `methodConfig[0].timeout: "1" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":"s"`), "", `methodConfig[0].timeout: "s" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":"-s"`), "", `methodConfig[0].timeout: "-s" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":"1.2.3s"`), "", `methodConfig[0].timeout: "1.2.3s" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":" 1s"`), "", `methodConfig[0].timeout: " 1s" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":"1e3s"`), "", `methodConfig[0].timeout: "1e3s" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":"1S"`), "", `methodConfig[0].timeout: "1S" is not a duration such as "0.5s"`, agrees},
	{"V4", method(`"timeout":".5s"`), "", `methodConfig[0].timeout: ".5s" is not a duration such as "0.5s"`, laxTime},
	{"V4", method(`"timeout":"1.s"`), "", `methodConfig[0].timeout: "1.s" is not a duration such as "0.5s"`, laxTime},
	{"V4", method(`"timeout":"+1s"`), "", `methodConfig[0].timeout: "+1s" is not a duration such as "0.5s"`, laxTime},
	{"V4", method(`"timeout":"1.-5s"`), "", `methodConfig[0].timeout: "1.-5s" is not a duration such as "0.5s"`, laxTime},
	{"V4", method(`"timeout":0.5`), "", `methodConfig[0].timeout: 0.5 is not a string`, agrees},
	{"V4", method(`"timeout":"` + strings.Repeat("9", 100) + `"`), "",
		`methodConfig[0].timeout: "` + strings.Repeat("9", 64) + `…" is not a duration such as "0.5s"`, agrees},
	{"S", method(`"timeout":"-1s"`), "", `methodConfig[0].timeout: -1s is negative`, anyTimeout},
	{"S", method(`"timeout":"-0.5s"`), "", `methodConfig[0].timeout: -500ms is negative`, anyTimeout},
	{"S", method(`"timeout":"0s"`), "", `methodConfig[0].timeout: "0s" means no time to some implementations, and no bound to others`, anyTimeout},

	// Hedging policies.
	{"V1", hedging(`"maxAttempts":2`), "s/m hedge 2 0s []", "", agrees},
	{"V1", hedging(`"maxAttempts":5`), "s/m hedge 5 0s []", "", agrees},
	{"V1", hedging(``), "", `methodConfig[0].hedgingPolicy.maxAttempts: is missing`, blind},
	{"V1", hedging(`"maxAttempts":null`), "", `methodConfig[0].hedgingPolicy.maxAttempts: is missing`, blind},
	{"V1", hedging(`"maxAttempts":0`), "", `methodConfig[0].hedgingPolicy.maxAttempts: 0 is below 2`, blind},
	{"V1", hedging(`"maxAttempts":1`), "", `methodConfig[0].hedgingPolicy.maxAttempts: 1 is below 2`, blind},
	{"V1", hedging(`"maxAttempts":-1`), "", `methodConfig[0].hedgingPolicy.maxAttempts: -1 is below 2`, blind},
	{"V1", hedging(`"maxAttempts":2.5`), "", `methodConfig[0].hedgingPolicy.maxAttempts: 2.5 is not an integer of 64 bits`, blind},
	{"V1", hedging(`"maxAttempts":2.0`), "", `methodConfig[0].hedgingPolicy.maxAttempts: 2.0 is not an integer of 64 bits`, blind},
	{"V1", hedging(`"maxAttempts":"3"`), "", `methodConfig[0].hedgingPolicy.maxAttempts: "3" is not a number`, blind},
	{"V1", hedging(`"maxAttempts":true`), "", `methodConfig[0].hedgingPolicy.maxAttempts: true is not a number`, blind},
	{"V2", hedging(`"maxAttempts":6`), "s/m hedge 5 0s []", "", agrees},
	{"V2", hedging(`"maxAttempts":100`), "s/m hedge 5 0s []", "", agrees},
	{"V2", hedging(`"maxAttempts":4294967298`), "s/m hedge 5 0s []", "", agrees},
	{"V2", hedging(`"maxAttempts":99999999999999999999`), "",
		`methodConfig[0].hedgingPolicy.maxAttempts: 99999999999999999999 is not an integer of 64 bits`, blind},
	{"V3", hedging(`"maxAttempts":3,"hedgingDelay":"0s"`), "s/m hedge 3 0s []", "", agrees},
	{"V3", hedging(`"maxAttempts":3,"hedgingDelay":"0.05s"`), "s/m hedge 3 50ms []", "", agrees},
	{"V4", hedging(`"maxAttempts":3,"hedgingDelay":"50ms"`), "", `methodConfig[0].hedgingPolicy.hedgingDelay: "50ms" is not a duration such as "0.5s"`, blind},
	{"V4", hedging(`"maxAttempts":3,"hedgingDelay":"-1s"`), "", `methodConfig[0].hedgingPolicy.hedgingDelay: -1s is negative`, blind},
	{"V4", hedging(`"maxAttempts":3,"hedgingDelay":1`), "", `methodConfig[0].hedgingPolicy.hedgingDelay: 1 is not a string`, blind},
	{"V5", codesOf(`[]`), "s/m hedge 2 0s []", "", agrees},
	{"V5", codesOf(`[14,"INTERNAL","unavailable","Data_Loss",1]`), "s/m hedge 2 0s [Canceled Internal Unavailable DataLoss]", "", agrees},
	{"V5", codesOf(`["CANCELLED",16]`), "s/m hedge 2 0s [Canceled Unauthenticated]", "", agrees},
	{"V5", codesOf(`[1,17]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[1]: 17 is not a status code`, blind},
	{"V5", codesOf(`[-1]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: -1 is not a status code`, blind},
	{"V5", codesOf(`["FOO"]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: "FOO" is not a status code`, blind},
	{"V5", codesOf(`["DATA_LOſS"]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: "DATA_LOſS" is not a status code`, blind},
	{"V5", codesOf(`["14"]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: "14" is not a status code`, blind},
	{"V5", codesOf(`[14.5]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: 14.5 is not a status code`, blind},
	{"V5", codesOf(`[null]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: null is not a status code`, blind},
	{"V5", codesOf(`[{}]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: an object is not a status code`, blind},
	{"V5", codesOf(`["ok"]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[0]: OK is not a failure`, blind},
	{"V5", codesOf(`[14,0]`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes[1]: OK is not a failure`, blind},
	{"V5", codesOf(`"UNAVAILABLE"`), "", `methodConfig[0].hedgingPolicy.nonFatalStatusCodes: "UNAVAILABLE" is not a list`, blind},
	{"V6", strings.Replace(retryWith("", ""), `}}]}`, `},"hedgingPolicy":{"maxAttempts":2}}]}`, 1), "",
		`methodConfig[0]: has both retryPolicy and hedgingPolicy`, blind},
	{"V6", method(`"retryPolicy":null,"hedgingPolicy":{"maxAttempts":2}`), "s/m hedge 2 0s []", "", agrees},
	{"S", hedging(`"maxAttempts":2,"unknown":[]`), "s/m hedge 2 0s []", "", agrees},
	{"S", method(`"hedgingPolicy":[]`), "", `methodConfig[0].hedgingPolicy: a list is not an object`, blind},

	// Retry policies.
	{"R7", retryWith("", ""), "s/m retry 4 100ms 1s ×2 [Unavailable]", "", agrees},
	{"R7", retryWith("maxAttempts", "2"), "s/m retry 2 100ms 1s ×2 [Unavailable]", "", agrees},
	{"V2", retryWith("maxAttempts", "6"), "s/m retry 5 100ms 1s ×2 [Unavailable]", "", agrees},
	{"R7", retryWith("maxAttempts", "1"), "", `methodConfig[0].retryPolicy.maxAttempts: 1 is below 2`, agrees},
	{"R7", retryWith("maxAttempts", ""), "", `methodConfig[0].retryPolicy.maxAttempts: is missing`, agrees},
	{"R6", retryWith("initialBackoff", ""), "", `methodConfig[0].retryPolicy.initialBackoff: is missing`, agrees},
	{"R6", retryWith("initialBackoff", `"0s"`), "", `methodConfig[0].retryPolicy.initialBackoff: 0s is not above 0`, agrees},
	{"R6", retryWith("initialBackoff", `"-1s"`), "", `methodConfig[0].retryPolicy.initialBackoff: -1s is not above 0`, agrees},
	{"R6", retryWith("initialBackoff", `"2s"`), "s/m retry 4 2s 1s ×2 [Unavailable]", "", agrees},
	{"R6", retryWith("maxBackoff", ""), "", `methodConfig[0].retryPolicy.maxBackoff: is missing`, agrees},
	{"R6", retryWith("maxBackoff", `"0s"`), "", `methodConfig[0].retryPolicy.maxBackoff: 0s is not above 0`, agrees},
	{"R6", retryWith("maxBackoff", `"1m"`), "", `methodConfig[0].retryPolicy.maxBackoff: "1m" is not a duration such as "0.5s"`, agrees},
	{"R6", retryWith("backoffMultiplier", ""), "", `methodConfig[0].retryPolicy.backoffMultiplier: is missing`, agrees},
	{"R6", retryWith("backoffMultiplier", "0"), "", `methodConfig[0].retryPolicy.backoffMultiplier: 0 is not a number above 0`, agrees},
	{"R6", retryWith("backoffMultiplier", "-2"), "", `methodConfig[0].retryPolicy.backoffMultiplier: -2 is not a number above 0`, agrees},
	{"R6", retryWith("backoffMultiplier", "0.5"), "s/m retry 4 100ms 1s ×0.5 [Unavailable]", "", agrees},
	{"R6", retryWith("backoffMultiplier", "1e400"), "", `methodConfig[0].retryPolicy.backoffMultiplier: 1e400 is out of range`, agrees},
	{"R6", retryWith("backoffMultiplier", "1e-400"), "", `methodConfig[0].retryPolicy.backoffMultiplier: 0 is not a number above 0`, agrees},
	{"R6", retryWith("backoffMultiplier", `"2"`), "", `methodConfig[0].retryPolicy.backoffMultiplier: "2" is not a number`, agrees},
	{"R6", retryWith("retryableStatusCodes", ""), "", `methodConfig[0].retryPolicy.retryableStatusCodes: is missing`, agrees},
	{"R6", retryWith("retryableStatusCodes", "[]"), "", `methodConfig[0].retryPolicy.retryableStatusCodes: is empty`, agrees},
	{"R2", retryWith("retryableStatusCodes", `[8,"UNAVAILABLE",14]`), "s/m retry 4 100ms 1s ×2 [ResourceExhausted Unavailable]", "", agrees},
	{"V5", retryWith("retryableStatusCodes", `["unavailable"]`), "s/m retry 4 100ms 1s ×2 [Unavailable]", "", caseless},
	{"V5", retryWith("retryableStatusCodes", `["OK"]`), "", `methodConfig[0].retryPolicy.retryableStatusCodes[0]: OK is not a failure`, anyCode},
	{"V5", retryWith("retryableStatusCodes", `[17]`), "", `methodConfig[0].retryPolicy.retryableStatusCodes[0]: 17 is not a status code`, agrees},

	// Throttling.
	{"V7", throttling(`"maxTokens":10,"tokenRatio":0.1`), "throttle 10 0.1", "", agrees},
	{"V7", throttling(`"maxTokens":1000,"tokenRatio":1`), "throttle 1000 1", "", agrees},
	{"V7", throttling(`"maxTokens":3.555,"tokenRatio":1`), "throttle 3.555 1", "", agrees},
	{"V7", throttling(`"maxTokens":0.001,"tokenRatio":1`), "throttle 0.001 1", "", agrees},
	{"V7", throttling(`"maxTokens":1.0000e1,"tokenRatio":1`), "throttle 10 1", "", agrees},
	{"V7", throttling(`"maxTokens":12500E-3,"tokenRatio":1`), "throttle 12.5 1", "", agrees},
	{"V7", throttling(`"maxTokens":3.5555,"tokenRatio":1`), "", `retryThrottling.maxTokens: 3.5555 has more than three decimals`, anyTokens},
	{"V7", throttling(`"maxTokens":0.0001,"tokenRatio":1`), "", `retryThrottling.maxTokens: 0.0001 has more than three decimals`, anyTokens},
	{"V7", throttling(`"maxTokens":0,"tokenRatio":1`), "", `retryThrottling.maxTokens: 0 is not a number above 0 and at most 1000`, agrees},
	{"V7", throttling(`"maxTokens":-1,"tokenRatio":1`), "", `retryThrottling.maxTokens: -1 is not a number above 0 and at most 1000`, agrees},
	{"V7", throttling(`"maxTokens":1000.001,"tokenRatio":1`), "", `retryThrottling.maxTokens: 1000.001 is not a number above 0 and at most 1000`, agrees},
	{"V7", throttling(`"maxTokens":1e99999999999999999999,"tokenRatio":1`), "",
		`retryThrottling.maxTokens: 1e99999999999999999999 is not a number above 0 and at most 1000`, agrees},
	{"V7", throttling(`"maxTokens":"10","tokenRatio":1`), "", `retryThrottling.maxTokens: "10" is not a number`, agrees},
	{"V7", throttling(`"tokenRatio":1`), "", `retryThrottling.maxTokens: is missing`, agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":0.5466`), "throttle 10 0.546", "", agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":0.9999`), "throttle 10 0.999", "", agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":1.001`), "throttle 10 1.001", "", agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":1e300`), "throttle 10 1000", "", agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":0.001`), "throttle 10 0.001", "", agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":0.0004`), "", `retryThrottling.tokenRatio: 0.0004 is not a number of at least 0.001`, anyTokens},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":1e-99999999999999999999`), "",
		`retryThrottling.tokenRatio: 1e-99999999999999999999 is not a number of at least 0.001`, agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":0`), "", `retryThrottling.tokenRatio: 0 is not a number of at least 0.001`, agrees},
	{"V8", throttling(`"maxTokens":10,"tokenRatio":-0.1`), "", `retryThrottling.tokenRatio: -0.1 is not a number of at least 0.001`, agrees},
	{"V8", `{"retryThrottling":{"maxTokens":10,"tokenRatio":0}}`, "", `retryThrottling.tokenRatio: 0 is not a number of at least 0.001`, alone},
	{"V8", throttling(`"maxTokens":10`), "", `retryThrottling.tokenRatio: is missing`, agrees},
	{"V11", `{"methodConfig":[{"name":[{}],"retryThrottling":"ignored"}],"retryThrottling":{"maxTokens":1,"tokenRatio":1}}`, "/; throttle 1 1", "", agrees},
	{"V7", `{"retryThrottling":[]}`, "", `retryThrottling: a list is not an object`, agrees},

	// All of it at once.
	{"A6", `{
		"loadBalancingConfig": [{"round_robin": {}}],
		"methodConfig": [{
			"name": [{"service": "shop.Stock", "method": "GetStock"}], "timeout": "2s", "waitForReady": true,
			"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
				"retryableStatusCodes": ["UNAVAILABLE"]}
		}, {
			"name": [{"service": "shop.Stock", "method": "ListWarehouses"}],
			"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.05s", "nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL"]}
		}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
	}`, "shop.Stock/GetStock timeout 2s retry 4 100ms 1s ×2 [Unavailable]; shop.Stock/ListWarehouses hedge 3 50ms [Internal Unavailable]; throttle 10 0.1",
		"", agrees},

	// A21: what is bad in one place rejects all.
	{"A21", `{"methodConfig":[{"name":[{"service":"s"}],"timeout":"1s"},{"name":[{}],"hedgingPolicy":{"maxAttempts":1}}]}`, "",
		`methodConfig[1].hedgingPolicy.maxAttempts: 1 is below 2`, blind},
	{"A21", `{"methodConfig":[{"name":[{"service":"s"}],"timeout":"1s"}],"retryThrottling":{"maxTokens":0,"tokenRatio":1}}`, "",
		`retryThrottling.maxTokens: 0 is not a number above 0 and at most 1000`, agrees},
	{"V12", `{"methodConfig":[{"name":[{"service":"s"}],"hedgingPolicy":{"maxAttempts":2}},{"name":[{"service":"s"}]}]}`, "",
		`methodConfig[1].name[0]: "s" is named in methodConfig[0].name[0] already`, agrees},
}

func TestServiceConfigsAreObeyedOrRejectedAsAWhole(t *testing.T) {
	for _, c := range configs {
		t.Run(c.rule, func(t *testing.T) {
			config, err := grpcmw.ParseServiceConfig(c.document)
			if c.err == "" {
				if err != nil {
					t.Fatalf("%s: %v", c.document, err)
				}
				if got := describe(config); got != c.want {
					t.Errorf("%s is %q, want %q", c.document, got, c.want)
				}
				return
			}
			if config != nil {
				t.Errorf("%.200s: a config, %q, beside the error", c.document, describe(config))
			}
			if want := "grpcmw: service config: " + c.err; err == nil || err.Error() != want {
				t.Errorf("%.200s:\n got %v\nwant %v", c.document, err, want)
			}
		})
	}
}

// Where grpc-go judges a document otherwise, the suite has the reason; and where both
// accept it, both mean the same by it.
func TestServiceConfigsMeanToTheChannelWhatTheyMeanHere(t *testing.T) {
	channel := newChannelParser(t)
	for _, c := range configs {
		theirs, err := channel(c.document)
		if agreed := (err == nil) == (c.err == ""); agreed != (c.channel == agrees) {
			t.Errorf("%.200s: grpc-go says %v, the suite says %q", c.document, err, c.channel)
		}
		ours, ourErr := grpcmw.ParseServiceConfig(c.document)
		if err != nil || ourErr != nil {
			continue
		}
		sameAsTheChannel(t, c.document, ours, theirs)
	}
}

func sameAsTheChannel(t *testing.T, document string, ours *grpcmw.ServiceConfig, theirs *grpc.ServiceConfig) {
	t.Helper()
	count := 0
	for _, m := range ours.Options().Methods {
		for _, name := range m.Names {
			count++
			key := ""
			if name.Service != "" {
				key = "/" + name.Service + "/" + name.Method
			}
			their, ok := theirs.Methods[key]
			if !ok {
				t.Errorf("%s: grpc-go has no config for %q", document, key)
				continue
			}
			if got := their.Timeout; (got == nil) != (m.Timeout == 0) || got != nil && *got != m.Timeout {
				t.Errorf("%s: timeout %v, grpc-go's is %v", document, m.Timeout, got)
			}
			if (m.Retry == nil) != (their.RetryPolicy == nil) {
				t.Errorf("%s: retry policy %v, grpc-go's is %v", document, m.Retry, their.RetryPolicy)
			}
			if m.Retry == nil || their.RetryPolicy == nil {
				continue
			}
			a, b := m.Retry, their.RetryPolicy
			if a.MaxAttempts != b.MaxAttempts || a.InitialBackoff != b.InitialBackoff || a.MaxBackoff != b.MaxBackoff ||
				a.BackoffMultiplier != b.BackoffMultiplier || len(a.Retryable) != len(b.RetryableStatusCodes) {
				t.Errorf("%s: retry policy %v, grpc-go's is %v", document, *a, *b)
			}
			for _, code := range a.Retryable {
				if !b.RetryableStatusCodes[code] {
					t.Errorf("%s: grpc-go does not retry %v", document, code)
				}
			}
		}
	}
	if count != len(theirs.Methods) {
		t.Errorf("%s: %d names, grpc-go has %d", document, count, len(theirs.Methods))
	}
}

func TestTheChannelTakesWhatIsLeftForIt(t *testing.T) {
	for _, c := range configs {
		config, err := grpcmw.ParseServiceConfig(c.document)
		if err != nil || c.channel == noSelfTest {
			continue
		}
		conn, err := grpc.NewClient("passthrough:///unused", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(config.ChannelJSON()), grpc.WithContextDialer(refuse))
		if err != nil {
			t.Errorf("%s, of %s: %v", config.ChannelJSON(), c.document, err)
			continue
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
