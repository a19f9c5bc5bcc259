import { lambdaFunction } from '../../shared/lambda/function.ts';
import { aliasText } from '../../shared/nameservice/alias.ts';
import { nameserviceFromEnvironment } from '../../shared/nameservice/environment.ts';
import { ALIAS_NAME_FIELDS } from '../../shared/nameservice/inputs.ts';
import { repairAlias } from '../../shared/nameservice/repair-alias.ts';
import { type RepairAliasInput, repairAliasInput } from '../../shared/nameservice/repair-inputs.ts';

export const repairNames = (dependencies = nameserviceFromEnvironment()) =>
  lambdaFunction({
    name: 'repairNames',
    input: repairAliasInput(),
    nameFields: ALIAS_NAME_FIELDS,
    run: repairAlias(dependencies),
    logged: ['op', 'alias', 'kind', 'outcome', 'created', 'repeated'],
    audited: true,
    derivedFields: (input) => ({ alias: aliasText(input.alias), expected: input.expected, ...next(input) }),
  });

/** The field `next` for the log, without `payload` and `extra`, which hold data of callers. */
function next(input: RepairAliasInput): object {
  if (!('next' in input)) return {};
  const { payload: _, extra: __, ...rest } = { payload: null, extra: null, ...input.next };
  return { next: rest };
}

export const handler = repairNames();
