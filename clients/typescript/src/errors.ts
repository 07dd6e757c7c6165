import { Code, ConnectError } from "@connectrpc/connect";
import { type BadRequest_FieldViolation, BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./generated/google/rpc/error_details_pb.js";

/** A request field that breaks its rule: its path, e.g. `texts[3]`, and the rule with the value that breaks it. */
export type FieldViolation = Pick<BadRequest_FieldViolation, "field" | "description">;

/** A failed call; every method of the client throws this. */
export class FacetsError extends Error {
  override readonly name = "FacetsError";

  private constructor(
    /** gRPC status, e.g. `INVALID_ARGUMENT`. */
    readonly code: string,
    /** The server's message: what was wrong, what was expected, what it got. */
    message: string,
    /** Stable machine-readable word, e.g. `TEXT_TOO_LONG`; empty when unknown. */
    readonly reason: string,
    /** Fields that break their rules; empty when the error is not about fields. */
    readonly fieldViolations: readonly FieldViolation[],
    /** Milliseconds that the server asks to wait; undefined when it does not say. */
    readonly retryAfterMs: number | undefined,
    /** Identifies the call in the server's log; empty when unknown. */
    readonly requestId: string,
    cause: unknown,
  ) {
    super(message, { cause });
  }

  /** The first field that breaks its rule, e.g. `texts[1]`. */
  get field(): string | undefined {
    return this.fieldViolations[0]?.field;
  }

  /** Converts an error of the transport. */
  static from(error: unknown): FacetsError {
    if (error instanceof FacetsError) return error;
    const failure = ConnectError.from(error);
    const info = failure.findDetails(ErrorInfoSchema)[0];
    const fields = failure.findDetails(BadRequestSchema).flatMap((detail) => detail.fieldViolations);
    const id = failure.metadata.get("x-request-id") ?? info?.metadata["request_id"] ?? "";
    const violations = fields.map(({ field, description }) => ({ field, description }));
    return new FacetsError(
      statusName(failure.code), failure.rawMessage, info?.reason ?? "", violations, retryAfterMs(failure), id, error,
    );
  }
}

/** Milliseconds that the server asks to wait after an error; undefined: it does not say; negative: do not retry. */
export function retryAfterMs(error: ConnectError): number | undefined {
  const pushback = error.metadata.get("grpc-retry-pushback-ms");
  if (pushback !== null && /^-?\d+$/.test(pushback)) return Number(pushback);
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay && Number(delay.seconds) * 1000 + delay.nanos / 1e6;
}

/** `Code.InvalidArgument` -> `INVALID_ARGUMENT`. */
function statusName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
