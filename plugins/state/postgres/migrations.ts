/** Database migrations: each step runs once per database. */
import type { PoolClient } from 'pg'
import { postgresErrors } from './errors.ts'

/** Key of the advisory lock, so that gateways migrate one after the other. */
const MIGRATION_LOCK = 7_303_014_226_781

/** @param s the schema's name; a plain word, by its configuration */
const STEPS: readonly ((s: string) => string)[] = [
  (s) => `
CREATE TABLE ${s}.records (
  collection text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  value text NOT NULL,
  version text NOT NULL,
  expires_at_ms bigint,
  PRIMARY KEY (collection, tenant, id)
);
CREATE INDEX records_expiry ON ${s}.records (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- One atomic write. Puts and deletions name each record once, all in one order, so that two writes rarely cross.
-- Conditions are checked under locks that last to the end of the transaction; one that does not hold ends it.
CREATE FUNCTION ${s}.apply_write(
  now_ms bigint, is_relaxed boolean,
  condition_collections text[], condition_tenants text[], condition_ids text[], condition_versions text[],
  put_collections text[], put_tenants text[], put_ids text[], put_values text[], put_versions text[],
  put_expiries bigint[], put_if_absent boolean[],
  gone_collections text[], gone_tenants text[], gone_ids text[]
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  found_version text;
  found_expiry bigint;
  put_count bigint;
BEGIN
  IF is_relaxed THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  FOR i IN 1 .. cardinality(condition_ids) LOOP
    IF condition_versions[i] IS NULL THEN
      -- A record that is not there cannot be locked; those who want to be the first lock its name.
      PERFORM pg_advisory_xact_lock(hashtextextended(
        condition_collections[i] || E'\\x01' || condition_tenants[i] || E'\\x01' || condition_ids[i], 0));
    END IF;
    SELECT r.version, r.expires_at_ms INTO found_version, found_expiry FROM ${s}.records r
      WHERE r.collection = condition_collections[i] AND r.tenant = condition_tenants[i] AND r.id = condition_ids[i]
      FOR UPDATE;
    IF found_expiry <= now_ms THEN
      found_version := NULL;
    END IF;
    IF found_version IS DISTINCT FROM condition_versions[i] THEN
      RAISE EXCEPTION USING ERRCODE = 'WR001', MESSAGE = 'a condition does not hold';
    END IF;
  END LOOP;
  IF cardinality(gone_ids) > 0 THEN
    DELETE FROM ${s}.records r
      USING unnest(gone_collections, gone_tenants, gone_ids) AS g(collection, tenant, id)
      WHERE r.collection = g.collection AND r.tenant = g.tenant AND r.id = g.id;
  END IF;
  IF cardinality(put_ids) > 0 THEN
    INSERT INTO ${s}.records AS r (collection, tenant, id, value, version, expires_at_ms)
      SELECT p.collection, p.tenant, p.id, p.value, p.version, p.expires_at_ms
      FROM unnest(put_collections, put_tenants, put_ids, put_values, put_versions, put_expiries, put_if_absent)
        AS p(collection, tenant, id, value, version, expires_at_ms, if_absent)
      WHERE NOT p.if_absent
      ON CONFLICT (collection, tenant, id) DO UPDATE
        SET value = excluded.value, version = excluded.version, expires_at_ms = excluded.expires_at_ms;
    IF true = ANY (put_if_absent) THEN
      INSERT INTO ${s}.records AS r (collection, tenant, id, value, version, expires_at_ms)
        SELECT p.collection, p.tenant, p.id, p.value, p.version, p.expires_at_ms
        FROM unnest(put_collections, put_tenants, put_ids, put_values, put_versions, put_expiries, put_if_absent)
          AS p(collection, tenant, id, value, version, expires_at_ms, if_absent)
        WHERE p.if_absent
        ON CONFLICT (collection, tenant, id) DO UPDATE
          SET value = excluded.value, version = excluded.version, expires_at_ms = excluded.expires_at_ms
          WHERE r.expires_at_ms <= now_ms;
      GET DIAGNOSTICS put_count = ROW_COUNT;
      IF put_count <> (SELECT count(*) FROM unnest(put_if_absent) AS a WHERE a) THEN
        RAISE EXCEPTION USING ERRCODE = 'WR001', MESSAGE = 'a condition does not hold';
      END IF;
    END IF;
  END IF;
END
$body$;`,
]

/** What `apply_write` fails with when a condition does not hold. */
export const CONDITION_FAILED = 'WR001'

/**
 * Brings the schema up to date.
 * @throws database_unsuitable for another encoding, or tables of a newer gateway
 */
export async function migrate(client: PoolClient, schema: string): Promise<void> {
  const encoding = await client.query<{ server_encoding: string }>('SHOW server_encoding')
  const found = encoding.rows[0]?.server_encoding
  if (found !== 'UTF8') throw postgresErrors.database_unsuitable(`its encoding is ${found}, not UTF8`)
  await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK])
  try {
    await client.query('BEGIN')
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    await client.query(
      `CREATE TABLE IF NOT EXISTS ${schema}.migrations (step int PRIMARY KEY, done_at timestamptz DEFAULT now())`,
    )
    const done = await client.query<{ step: number | null }>(
      `SELECT max(step) AS step FROM ${schema}.migrations`,
    )
    const from = done.rows[0]?.step ?? 0
    if (from > STEPS.length) {
      throw postgresErrors.database_unsuitable(
        `the tables in schema ${schema} were created by a newer version of the gateway`,
      )
    }
    for (const [index, step] of STEPS.entries()) {
      if (index < from) continue
      await client.query(step(schema))
      await client.query(`INSERT INTO ${schema}.migrations (step) VALUES ($1)`, [index + 1])
    }
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined)
  }
}
