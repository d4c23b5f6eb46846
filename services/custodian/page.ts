/** One server's connections in one account: one page, or it proves nothing (lifecycles §2.1). */
import type { AccountNkey, Principal, ServerNkey, UserNkey } from "../../shared/tokens.ts";
import { attribute } from "./attribute.ts";
import { readConnz } from "./replies.ts";

export interface Row {
  readonly cid: number;
  readonly principal?: Principal;
  readonly userNkey?: UserNkey;
}

export interface Page {
  readonly rows: readonly Row[];
  /** Why this page is not the whole truth about the account; its rows are true all the same. */
  readonly fault?: string;
  /** Why a row could be anyone; the page itself is well formed. */
  readonly unattributed?: string;
}

export interface Asked {
  readonly server: ServerNkey;
  readonly account: AccountNkey;
  readonly limit: number;
}

/** Offset 0 always: pages are shifted by anyone who opens and closes connections, one answer is not. */
export const connzRequest = ({ account, limit }: Asked) => ({
  acc: account,
  auth: true,
  state: 0,
  sort: "cid",
  limit,
  offset: 0,
});

export const unanswered: Page = { rows: [], fault: "it does not answer CONNZ" };

export function readPage(data: Uint8Array, { server, account, limit }: Asked): Page {
  const page = readConnz(data);
  if (!page) return unusable("its CONNZ answer is unreadable");
  // An account that the server cannot load is answered under an empty id.
  if (page.servers.some((id) => id !== server)) return unusable("its CONNZ answer is another server's");
  if (page.offset !== 0 || page.limit !== limit) return unusable("its CONNZ answer is to another question");
  if (page.count !== page.connections.length) return unusable("its CONNZ answer miscounts");
  let last = 0;
  const rows: Row[] = [];
  let fault = page.count < limit ? undefined : `its page of ${limit} connections is full`;
  let unattributed: string | undefined;
  for (const { cid, kind, account: of, jwt, authorized_user: authorizedUser } of page.connections) {
    if (cid <= last) return unusable("its CONNZ answer is not in order");
    last = cid;
    if (of !== account) return unusable(`connection ${cid} is of another account`);
    if (kind !== "Client") {
      fault ??= `connection ${cid} is a ${kind.toLowerCase()}`;
      continue;
    }
    const { fault: nobody, ...whose } = attribute({
      ...(jwt === undefined ? {} : { jwt }),
      ...(authorizedUser === undefined ? {} : { authorizedUser }),
    });
    if (nobody !== undefined) unattributed ??= `connection ${cid}: ${nobody}`;
    rows.push({ cid, ...whose });
  }
  return { rows, ...(fault === undefined ? {} : { fault }), ...(unattributed === undefined ? {} : { unattributed }) };
}

const unusable = (fault: string): Page => ({ rows: [], fault });
